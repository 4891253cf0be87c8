"""The published scorers of d1 (dllm-reasoning/d1, eval/parse_and_get_acc.py), to the letter of their behaviour.

Also where they are wrong: a thousands separator ends a number, the first box of a GSM8K answer counts, a puzzle with several
solutions has one right one. What they hand to Python's `eval` is walked instead, with the same results. Every function takes
time linear in the text; published results that would take forever (9**9**9) or raise are wrong answers here.
"""

import ast
import re
from collections.abc import Callable, Sequence
from operator import add, floordiv, mul, neg, pos, sub, truediv

from unmask.tasks.extract import tagged

NUMBER = re.compile(r"-?\d+\.?\d*")
ENDINGS = ("<|eot_id|>", "<|endoftext|>")
LONGEST = 1000
"""Longer expressions are not parsed."""
LARGEST_BITS = 4096
"""Larger powers are not computed."""


def gsm8k_number(text: str) -> float | None:
    """The number that d1 takes for the answer: from the first box that holds one, else the last one in the answer tags."""
    for box in _flat_boxes(text):
        inside = box.strip()
        if inside.strip(".") and (found := _float(inside, which=0)) is not None:
            return found
    return _float((tagged(text) or "").strip(), which=-1)


def _flat_boxes(text: str) -> list[str]:
    r"""What stands between `\boxed{` and the next closing brace of the same line."""
    found, place = [], 0
    while (place := text.find("\\boxed{", place)) >= 0:
        start = place + len("\\boxed{")
        end, line = text.find("}", start), text.find("\n", start)
        if end < 0:
            break
        if 0 <= line < end:
            place = line  # nothing on this line is closed
            continue
        found.append(text[start:end])
        place = end + 1
    return found


def _float(text: str, which: int) -> float | None:
    """The text as a number, else the first (0) or last (-1) number in it."""
    try:
        return float(text)
    except ValueError:
        numbers = NUMBER.findall(text)
        return float(numbers[which]) if numbers else None


def boxed(text: str) -> str | None:
    r"""d1's "last box": after `\boxed ` with a space up to a dollar sign, else balanced, else all of it; None if unclosed."""
    if "\\boxed " in text:
        return text.rsplit("\\boxed ", maxsplit=1)[-1].split("$", maxsplit=1)[0]
    start = text.rfind("\\boxed")
    if start < 0:
        start = text.rfind("\\fbox")
        if start < 0:
            return text
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0 and match[0] == "}":
            found = text[start : match.end()]
            opening = "\\boxed{"
            return found[len(opening) : -1] if found.startswith(opening) else found
    return None


def math_answer(text: str) -> str | None:
    """The text that d1 takes for a MATH answer."""
    found = boxed(text)
    if not found:
        inside = tagged(text)
        found = found if inside is None else inside.strip()
    return found


def same_math(answer: str | None, truth: str | None) -> bool:
    """Whether two MATH answers are the same text after the clean-up of Hendrycks et al. (2021)."""
    if answer is None or truth is None:
        return answer is truth
    try:
        return clean_math(answer) == clean_math(truth)
    except (ValueError, IndexError, AssertionError):
        return answer == truth


def clean_math(text: str) -> str:
    """One spelling of a LaTeX answer; raises on what the published program raises on."""
    for old, new in (
        ("\n", ""), ("\\!", ""), ("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), ("\\left", ""), ("\\right", ""),
        ("^{\\circ}", ""), ("^\\circ", ""), ("\\$", ""),
    ):  # fmt: skip
        text = text.replace(old, new)
    if "\\text{ " in text:  # a unit on the right
        text, _unit = text.split("\\text{ ")
    text = text.replace("\\%", "").replace(" .", " 0.").replace("{.", "{0.")
    if not text:
        return text
    if text[0] == ".":
        text = "0" + text
    sides = text.split("=")
    if len(sides) == 2 and len(sides[0]) <= 2:
        text = sides[1]
    text = _braced_roots(text).replace(" ", "")
    text = _braced_fractions(text)
    if text == "0.5":
        text = "\\frac{1}{2}"
    sides = text.split("/")
    if len(sides) == 2:
        above, below = int(sides[0]), int(sides[1])
        if text == f"{above}/{below}":
            text = f"\\frac{{{above}}}{{{below}}}"
    return text


def _braced_roots(text: str) -> str:
    first, *rest = text.split("\\sqrt")
    return first + "".join("\\sqrt" + (part if part[0] == "{" else f"{{{part[0]}}}{part[1:]}") for part in rest)


def _braced_fractions(text: str) -> str:
    first, *rest = text.split("\\frac")
    parts = [first]
    for part in rest:
        if part[0] == "{":
            parts.append("\\frac" + part)
        elif len(part) < 2:
            return text
        else:
            parts.append(f"\\frac{{{part[0]}}}" + (part[1:] if part[1] == "{" else f"{{{part[1]}}}{part[2:]}"))
    return "".join(parts)


def countdown_expression(text: str) -> str:
    """The expression that d1 takes for a Countdown answer."""
    found = boxed(text)
    if found is None:
        inside = tagged(text)
        found = text if inside is None else inside.strip()
    for old, new in (("\\div", "/"), ("\\times", "*"), ("\\cdot", "*")):
        found = found.replace(old, new)
    signs = "0123456789+-*/() "
    place = -1
    while (place := found.find("=", place + 1)) >= 0:
        start = place
        while start > 0 and found[start - 1] in signs:
            start -= 1
        if start < place and found[place + 1 : place + 2] in tuple("0123456789. "):
            return found[start:place].strip()
    return found


def countdown_right(text: str, numbers: Sequence[int], target: int) -> bool:
    """Whether d1 counts a Countdown completion as right."""
    expression = countdown_expression(text)
    try:
        used = sorted(int(number) for number in re.findall(r"\d+", expression))
    except ValueError:  # more digits than Python converts
        return False
    if used != sorted(numbers) or not re.match(r"^[\d+\-*/().\s]+$", expression):
        return False
    found = arithmetic(expression.strip())
    return found is not None and abs(found - target) < 1e-5


def arithmetic(expression: str) -> float | None:
    """What Python makes of an arithmetic expression; None where it raises, or would not end."""
    if len(expression) > LONGEST:
        return None
    try:
        return _walk(ast.parse(expression, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv, ast.FloorDiv: floordiv,
}  # fmt: skip
UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {ast.UAdd: pos, ast.USub: neg}


def _walk(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        return UNARY[type(node.op)](_walk(node.operand))
    if isinstance(node, ast.BinOp):
        left, right = _walk(node.left), _walk(node.right)
        if isinstance(node.op, ast.Pow):
            if isinstance(left, int) and isinstance(right, int) and abs(right) * left.bit_length() > LARGEST_BITS:
                raise ValueError("too large")
            power = left**right
            if isinstance(power, complex):
                raise ValueError("not a real number")
            return float(power) if isinstance(power, float) else power
        if type(node.op) in BINARY:
            return BINARY[type(node.op)](left, right)
    raise ValueError("not arithmetic")


def sudoku_grid(text: str) -> str:
    """The cells that d1 reads out of a Sudoku completion, white space removed; empty if it finds none."""
    for find in (_fenced, _in_answer, _after_answer, _before_closing, _alone):
        found = find(text).strip()
        if found:
            return re.sub(r"\s", "", found)
    return ""


def sudoku_cells(text: str, puzzle: str, solution: str) -> tuple[int, int]:
    """Right cells among the empty ones, and how many were empty."""
    grid = sudoku_grid(text).ljust(16, "0")
    empty = [place for place, digit in enumerate(puzzle) if digit == "0"]
    return sum(grid[place] == solution[place] for place in empty), len(empty)


def _fenced(text: str) -> str:
    place = text.find("<answer>")
    while place >= 0 and (place := text.find("```", place)) >= 0:
        end = start = place + 3
        while end < len(text) and (text[end].isdecimal() or text[end].isspace()):
            end += 1
        if end > start and text.startswith("```", end):
            return text[start:end]
        place += 1
    return ""


def _until(text: str, endings: Sequence[str]) -> int:
    places = [place for ending in endings if (place := text.find(ending)) >= 0]
    return min(places, default=-1)


def _in_answer(text: str) -> str:
    rest = text.partition("<answer>")[2]
    end = _until(rest, (*ENDINGS, "</answer>"))
    return rest[:end] if end >= 0 else ""


def _after_answer(text: str) -> str:
    rest = text.partition("</answer>")[2].lstrip()
    end = _until(rest, ENDINGS)
    return rest[:end] if end >= 0 else rest


def _before_closing(text: str) -> str:
    place = -1
    while (place := text.find("</answer>", place + 1)) >= 0:
        end = place
        while end > 0 and text[end - 1].isspace():
            end -= 1
        if end >= 16 and text[end - 16 : end].isdecimal():
            return text[end - 16 : end]
    return ""


def _alone(text: str) -> str:
    match = re.search(r"\b(\d{16})\b", text)
    return match[1] if match else ""
