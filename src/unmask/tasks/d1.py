"""The published scorers of d1 (dllm-reasoning/d1, eval/parse_and_get_acc.py), to the letter of their behaviour.

Also where they are wrong: a thousands separator ends a number, the first box of a GSM8K answer counts, a puzzle with several
solutions has one right one. What they hand to Python's `eval` is walked instead, with the same results. Every function takes
time linear in the text; published results that would take forever (9**9**9) or raise are wrong answers here.
"""

import ast
import re
from collections.abc import Callable, Sequence
from itertools import islice
from operator import add, floordiv, mul, neg, pos, sub, truediv
from typing import Any

from unmask.tasks.extract import braces, tagged

NUMBER = re.compile(r"-?\d+\.?\d*")
BOXES = re.compile(r"\\boxed\{[^\S\n]*+(?:([^}\n\d]*+\d[^}\n]*+|[+-]?(?ai:infinity|inf|nan)[^\S\n]*+)\}|[^}\n]*+\}|.*+)")
r"""A box that ends on its line: its text, if Python's `float` or NUMBER can make a number of it."""
ENDINGS = ("<|eot_id|>", "<|endoftext|>")
LONGEST = 1000
"""Longer expressions are not parsed."""
LARGEST_BITS = 4096
"""Larger powers are not computed."""
Value = int | float | complex
"""Python's powers of negative numbers can be complex, and the published program takes them as they come."""


def gsm8k_number(text: str) -> float | None:
    """The number that d1 takes for the answer: from the first box that holds one, else the last one in the answer tags."""
    inside = next(filter(None, BOXES.findall(text)), None)
    if inside is not None:
        return _float(inside.strip(), _first)
    return _float((tagged(text) or "").strip(), _last)


def _float(text: str, find: Callable[[str], str | None]) -> float | None:
    """The text as a number, else the number found in it."""
    try:
        return float(text)
    except ValueError:
        number = find(text)
        return None if number is None else float(number)


def _first(text: str) -> str | None:
    match = NUMBER.search(text)
    return match[0] if match else None


def _last(text: str) -> str | None:
    backwards = re.search(r"\d[\d.]*-?", text[::-1])  # the last digit, and all that can belong to its number
    return NUMBER.findall(backwards[0][::-1])[-1] if backwards else None


def boxed(text: str) -> str | None:
    r"""d1's "last box": after `\boxed ` with a space up to a dollar sign, else balanced, else all of it; None if unclosed."""
    if "\\boxed " in text:
        return text.rsplit("\\boxed ", maxsplit=1)[-1].split("$", maxsplit=1)[0]
    start = text.rfind("\\boxed")
    if start < 0:
        start = text.rfind("\\fbox")
        if start < 0:
            return text
    places, opening, depth = braces(text[start:])
    closing = places[~opening & (depth == 0)]
    if not len(closing):
        return None
    found = text[start : start + int(closing[0]) + 1]
    return found[len("\\boxed{") : -1] if found.startswith("\\boxed{") else found


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
        wanted, given = clean_math(truth), _without_marks(answer)
        if len(given) - given.count(" ") > len(wanted):  # what is still to be done makes no text shorter
            return answer == truth
        return _written_out(given) == wanted
    except (ValueError, IndexError):
        return answer == truth


def clean_math(text: str) -> str:
    """One spelling of a LaTeX answer; raises on what the published program raises on."""
    return _written_out(_without_marks(text))


def _without_marks(text: str) -> str:
    for old, new in (
        ("\n", ""), ("\\!", ""), ("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), ("\\left", ""), ("\\right", ""),
        ("^{\\circ}", ""), ("^\\circ", ""), ("\\$", ""),
    ):  # fmt: skip
        text = text.replace(old, new)
    if text.count("\\text{ ") > 1:
        raise ValueError("more than one unit")
    text = text.partition("\\text{ ")[0]
    text = text.replace("\\%", "").replace(" .", " 0.").replace("{.", "{0.")
    if text.startswith("."):
        text = "0" + text
    name, _, right = text.partition("=")
    return right if text.count("=") == 1 and len(name) <= 2 else text


def _written_out(text: str) -> str:
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
    equation = re.search(r"[0-9+\-*/() ]=[0-9. ]", found)
    if equation is None:
        return found
    left = found[: equation.start() + 1]
    return left[len(left.rstrip("0123456789+-*/() ")) :].strip()


def countdown_right(text: str, numbers: Sequence[int], target: int) -> bool:
    """Whether d1 counts a Countdown completion as right."""
    expression = countdown_expression(text)
    digits = [match[0] for match in islice(re.finditer(r"\d+", expression), len(numbers) + 1)]
    try:
        used = sorted(int(number) for number in digits)
    except ValueError:  # more digits than Python converts
        return False
    if used != sorted(numbers) or not re.match(r"^[\d+\-*/().\s]+$", expression):
        return False
    found = arithmetic(expression.strip())
    return found is not None and abs(found - target) < 1e-5


def arithmetic(expression: str) -> Value | None:
    """What Python makes of an arithmetic expression; None where it raises, or would not end.

    >>> arithmetic("3 * (5 - 1)"), arithmetic("2 ** -1"), arithmetic("9 ** 9 ** 9"), arithmetic("1 // 0")
    (12, 0.5, None, None)
    """
    if len(expression) > LONGEST:
        return None
    try:
        return _walk(ast.parse(expression, mode="eval").body)
    except (SyntaxError, TypeError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _power(left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int) and abs(left) > 1 and right * left.bit_length() > LARGEST_BITS:
        raise ValueError("too large")
    return left**right


BINARY: dict[type[ast.operator], Callable[[Any, Any], Value]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv, ast.FloorDiv: floordiv, ast.Pow: _power,
}  # fmt: skip
UNARY: dict[type[ast.unaryop], Callable[[Any], Value]] = {ast.UAdd: pos, ast.USub: neg}


def _walk(node: ast.expr) -> Value:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        return UNARY[type(node.op)](_walk(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        return BINARY[type(node.op)](_walk(node.left), _walk(node.right))
    raise ValueError("not arithmetic")


def sudoku_grid(text: str) -> str:
    """The cells that d1 reads out of a Sudoku completion, white space removed; empty if it finds none."""
    for find in (_fenced, _in_answer, _after_answer, _before_closing, _alone):
        found = find(text).strip()
        if found:
            return "".join(found.split())
    return ""


def sudoku_cells(text: str, puzzle: str, solution: str) -> tuple[int, int]:
    """Right cells among the empty ones, and how many were empty."""
    grid = sudoku_grid(text).ljust(16, "0")
    empty = [place for place, digit in enumerate(puzzle) if digit == "0"]
    return sum(grid[place] == solution[place] for place in empty), len(empty)


def _fenced(text: str) -> str:
    match = re.search(r"```([\d\s]++)```", text.partition("<answer>")[2])
    return match[1] if match else ""


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
    for part in text.split("</answer>")[:-1]:
        digits = part.rstrip()[-16:]
        if len(digits) == 16 and digits.isdecimal():
            return digits
    return ""


def _alone(text: str) -> str:
    match = re.search(r"\b(\d{16})\b", text)
    return match[1] if match else ""
