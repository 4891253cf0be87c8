"""The d1 scorer does what its published program does: references by regular expressions, side by side on many texts."""

import re
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unmask.tasks import d1
from unmask.tasks.families import sample
from unmask.tasks.problem import Problem
from unmask.tasks.task import find_task

MANY = settings(max_examples=500, deadline=None)


def texts(*fragments: str, most: int = 16):
    """Texts made of the fragments that a scorer looks for, with some of anything in between."""
    return st.lists(st.sampled_from(fragments) | st.text(max_size=3), max_size=most).map("".join)


TAGS = ("<answer>", "</answer>", "<answer>", "</answer>", "\n", " ", "<reasoning>")
BOXES = ("\\boxed{", "\\boxed{", "\\boxed", "\\boxed ", "\\fbox{", "{", "}", "}", "}", "$")
NUMBERS = (
    "0",
    "1",
    "12",
    "-3",
    "4.5",
    ".5",
    "6.",
    "7,000",
    "1e3",
    "nan",
    "inf",
    "-Infinity",
    "1_0",
    "٣",
    "²",
    "..",
    "...",
    "-",
)


class TestGsm8k:
    """All boxes of one line each, in order; the first that holds a number; else the answer tags' last number."""

    @staticmethod
    def published(text):
        for box in re.findall(r"\\boxed{(.*?)}", text):
            if box.strip().strip("."):
                try:
                    return float(box.strip())
                except ValueError:
                    if numbers := re.findall(r"-?\d+\.?\d*", box):
                        return float(numbers[0])
        tagged = re.search("<answer>(.*?)</answer>", text, re.DOTALL)
        if tagged is None:
            return None
        try:
            return float(tagged[1].strip())
        except ValueError:
            numbers = re.findall(r"-?\d+\.?\d*", tagged[1])
            return float(numbers[-1]) if numbers else None

    @MANY
    @given(text=texts(*TAGS, *BOXES, *NUMBERS, *(f"\\boxed{{{number}}}" for number in NUMBERS)))
    @example(text="\\boxed{\n4} \\boxed{5}")
    @example(text="\\boxed{\\boxed{\n}\\boxed{6}")
    @example(text="\\boxed{a\\boxed{}7} \\boxed{8}")
    @example(text="\\boxed{\u0131nf} \\boxed{9}")
    @example(text="<answer>1.2.3</answer>")
    @example(text="<answer>1.2.-.3.</answer>")
    def test_same_number(self, text):
        assert repr(d1.gsm8k_number(text)) == repr(self.published(text))

    @MANY
    @given(inside=texts(*NUMBERS, " ", ".", "-", "1", most=8))
    def test_same_number_in_the_tags_and_in_a_box(self, inside):
        for text in (
            f"<answer>{inside}</answer>",
            f"\\boxed{{{inside}}}",
            f"\\boxed{{...}}<answer>{inside}</answer>\\boxed{{8}}",
        ):
            assert repr(d1.gsm8k_number(text)) == repr(self.published(text))

    @pytest.mark.parametrize(("text", "number"), [
        (r"\boxed{...} then \boxed{7}", 7.0),
        (r"\boxed{infinity} then \boxed{7}", float("inf")),
        (r"\boxed{} then \boxed{7}", 7.0),
        (r"\boxed{seven} then \boxed{7 pens}", 7.0),
        (r"\boxed{7} then \boxed{8}", 7.0),
        (r"\boxed{1,000}", 1.0),
        (r"\boxed{\$18.50}", 18.5),
        (r"\boxed{\frac{1}{2}}", 1.0),
        (r"\boxed{3 + 4 = 7}", 3.0),
        (r"\boxed{1e3}", 1000.0),
        ("<answer>6 pens and 7 cups</answer>", 7.0),
        ("<answer>6 pens</answer> <answer>7</answer>", 6.0),
        ("<answer>7", None),
        ("so it is 7", None),
        (r"\boxed{7", None),
        ("", None),
    ])  # fmt: skip
    def test_what_it_reads(self, text, number):
        assert d1.gsm8k_number(text) == self.published(text) == number

    def test_the_score_compares_as_floats(self):
        task = find_task("gsm8k")
        assert task.score(Problem("", "1000"), r"\boxed{1000.0}", "d1").solved
        assert not task.score(Problem("", "1000"), r"\boxed{1,000}", "d1").solved
        assert task.score(Problem("", "1,000"), r"\boxed{1000}", "d1").solved
        assert not task.score(Problem("", "1000"), "1000", "d1").solved


def last_box(text):
    r"""What the last box holds: the text after the last `\boxed ` up to a dollar sign, or up to the brace that closes first."""
    if "\\boxed " in text:
        return re.split(r"\\boxed ", text)[-1].split("$")[0]
    places = [match.start() for match in re.finditer(r"\\boxed", text)] or [
        match.start() for match in re.finditer(r"\\fbox", text)
    ]
    if not places:
        return text
    open_ = 0
    for end in range(places[-1], len(text)):
        open_ += (text[end] == "{") - (text[end] == "}")
        if text[end] == "}" and open_ == 0:
            return re.sub(r"\A\\boxed\{(.*)\}\Z", r"\1", text[places[-1] : end + 1], flags=re.DOTALL)
    return None


def in_tags(text):
    tagged = re.search("<answer>(.*?)</answer>", text, re.DOTALL)
    return None if tagged is None else tagged[1].strip()


class TestMath:
    """The last box, else what the answer tags hold; then one spelling of each side, by Hendrycks et al."""

    @MANY
    @given(text=texts(*TAGS, *BOXES, "\\frac12", "x", "1"))
    @example(text=r"\boxed}{{a}}")
    @example(text="\\fbox{\\boxed 3$4")
    def test_same_box(self, text):
        assert d1.boxed(text) == last_box(text)
        expected = last_box(text) or in_tags(text)
        assert d1.math_answer(text) == (last_box(text) if expected is None else expected)

    @staticmethod
    def spelling(text):
        """Rule by rule, as regular expressions; raises where the published rules meet a text that they did not expect."""
        text = re.sub(r"\n|\\!", "", text).replace("\\\\", "\\")
        text = re.sub(r"[td]frac", "frac", re.sub(r"[t]frac", "frac", text))
        text = text.replace("\\left", "").replace("\\right", "")
        text = text.replace("^{\\circ}", "").replace("^\\circ", "").replace("\\$", "")
        if "\\text{ " in text:
            text, _unit = text.split("\\text{ ")
        text = re.sub(r"(\A|(?<=[ {]))\.", "0.", text.replace("\\%", ""))
        if match := re.fullmatch("([^=]{0,2})=([^=]*)", text, re.DOTALL):
            text = match[2]
        if re.search(r"\\sqrt\Z|\\sqrt(?=\\sqrt)", text):
            raise ValueError("a root of nothing")
        text = re.sub(r"\\sqrt(?!\{)(.)", r"\\sqrt{\1}", text, flags=re.DOTALL).replace(" ", "")
        parts = text.split("\\frac")
        for number, part in enumerate(parts[1:], start=1):
            if not part:
                raise ValueError("a fraction of nothing")
            if part[0] != "{" and len(part) < 2:
                parts = [text]
                break
            parts[number] = "\\frac" + re.sub(
                r"\A([^{])\{", r"{\1}{", re.sub(r"\A([^{])([^{])", r"{\1}{\2}", part, flags=re.DOTALL)
            )
        text = "".join(parts)
        text = "\\frac{1}{2}" if text == "0.5" else text
        if text.count("/") == 1:
            above, below = map(int, text.split("/"))
            text = f"\\frac{{{above}}}{{{below}}}" if text == f"{above}/{below}" else text
        return text

    def published(self, answer, truth):
        try:
            return self.spelling(answer) == self.spelling(truth)
        except ValueError:
            return answer == truth

    PIECES = ("\\frac", "\\dfrac", "\\tfrac", "\\sqrt", "{", "}", "1", "2", "x", ".", "/", "=", " ", "\\left", "\\right", "(",
    ")",
              "\\text{ cm}", "\\text{cm}", "\\$", "\\%", "\\!", "^\\circ", "^{\\circ}", "\\\\", "\\pi", "0.5", "-", "+3",
              "\n")  # fmt: skip

    @MANY
    @given(answer=texts(*PIECES, most=8))
    def test_same_spelling(self, answer):
        try:
            expected = self.spelling(answer)
        except ValueError:
            with pytest.raises((ValueError, IndexError)):
                d1.clean_math(answer)
        else:
            assert d1.clean_math(answer) == expected

    @MANY
    @given(answer=texts(*PIECES, most=5), truth=texts(*PIECES, most=5))
    @example(answer="\\frac12", truth="\\frac{1}{2}")
    @example(answer="1/\\sqrt", truth="1/\\sqrt")
    @example(answer="x" * 40, truth="x")
    @example(answer=" " * 40 + "x", truth="x")
    def test_same_verdict(self, answer, truth):
        assert d1.same_math(answer, truth) == self.published(answer, truth)

    @pytest.mark.parametrize(("answer", "truth", "same"), [
        (r"\dfrac{1}{2}", r"\frac12", True),
        ("1/2", r"\frac{1}{2}", True),
        ("0.5", r"\frac{1}{2}", True),
        ("x = 5", "5", True),
        ("xyz = 5", "5", False),
        (r"\sqrt2", r"\sqrt{2}", True),
        (r"5\text{ cm}", "5", True),
        (r"5\text{cm}", "5", False),
        (r"\$5", "5", True),
        (r"90^\circ", "90", True),
        (r"10,\!000", "10,000", True),
        ("10,000", "10000", False),
        ("2/4", r"\frac{1}{2}", False),
        ("(x+1)(x-1)", "x^2-1", False),
        ("5.0", "5", False),
    ])  # fmt: skip
    def test_what_counts_as_the_same(self, answer, truth, same):
        assert d1.same_math(answer, truth) is self.published(answer, truth) is same

    def test_without_an_answer_nothing_is_right(self):
        task = find_task("math500")
        assert not task.score(Problem("", ""), r"\boxed{", "d1").solved
        assert not d1.same_math(None, "5")
        assert d1.same_math(None, None)


class TestCountdown:
    """The last box or the tags or all of it; cut at an equals sign; each number once; evaluated."""

    @staticmethod
    def expression(text):
        found = last_box(text)
        if found is None:
            found = text if in_tags(text) is None else in_tags(text)
        for old, new in ((r"\div", "/"), (r"\times", "*"), (r"\cdot", "*")):
            found = found.replace(old, new)
        equation = re.search(r"([0-9+\-*/() ]+)=[0-9. ]+", found)
        return found if equation is None else equation[1].strip()

    @classmethod
    def published(cls, text, numbers, target):
        found = cls.expression(text)
        if sorted(int(number) for number in re.findall(r"\d+", found)) != sorted(numbers):
            return False
        if not re.match(r"^[\d+\-*/().\s]+$", found):
            return False
        assert len(found) < 100, "too long to be evaluated here"
        if len(re.findall(r"\*\*", found)) > 1:
            return None  # it might never end
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return abs(eval(found.strip(), {"__builtins__": None}, {}) - target) < 1e-5
            except Exception:
                return False

    SIGNS = ("+", "-", "*", "/", "//", "**", "(", ")", " ", ".", "=", "= 12", "\\div", "\\times", "\\cdot", "\n", "٣")

    @MANY
    @given(text=texts(*TAGS, *BOXES, *SIGNS, "1", "3", "5"))
    @example(text="3 * (5 - 1) = 12")
    @example(text="x=1=y= 3*4 =12")
    @example(text="12 = 3 * (5 - 1)")
    def test_same_expression(self, text):
        assert d1.countdown_expression(text) == self.expression(text)

    @MANY
    @given(numbers=st.permutations([3, 5, 1]), gaps=st.lists(st.sampled_from([*SIGNS[:9], "", "*(", ")-", "-(", " 0"]),
        min_size=6, max_size=6),
           box=st.booleans(), target=st.sampled_from([12, 15, 0, 9, 1, 5]))  # fmt: skip
    def test_same_verdict(self, numbers, gaps, box, target):
        a, b, c = numbers
        text = f"{gaps[0]}{a}{gaps[1]}{gaps[2]}{b}{gaps[3]}{gaps[4]}{c}{gaps[5]}"
        text = rf"\boxed{{{text}}}" if box else f"<answer>{text}</answer>"
        expected = self.published(text, [3, 5, 1], target)
        if expected is not None:
            assert d1.countdown_right(text, [3, 5, 1], target) == expected

    @settings(max_examples=200, deadline=None)
    @given(numbers=st.permutations([3, 5, 1]), signs=st.lists(st.sampled_from(["+", "-", "*", "/", "//", "**"]), min_size=2,
        max_size=2),
           form=st.sampled_from(["{a}{x}{b}{y}{c}", "({a}{x}{b}){y}{c}", "{a}{x}({b}{y}{c})", "-{a}{x}-({b}{y}{c})",
           "(-{a}){x}.{b}{y}{c}"]),
           near=st.integers(-1, 1))  # fmt: skip
    def test_every_formula_is_evaluated_as_python_would(self, numbers, signs, form, near):
        a, b, c = numbers
        text = form.format(a=a, b=b, c=c, x=signs[0], y=signs[1])
        if signs != ["**", "**"]:
            try:
                value = eval(text, {"__builtins__": None}, {})
            except (ZeroDivisionError, TypeError):
                value = 0
            target = round(abs(value)) + near
            assert d1.countdown_right(rf"\boxed{{{text}}}", numbers, target) == self.published(
                rf"\boxed{{{text}}}", numbers, target
            )

    @pytest.mark.parametrize(("text", "right"), [
        (r"\boxed{3 * (5 - 1)}", True),
        (r"\boxed{3 * (5 - 1) = 12}", True),
        (r"\boxed{3 * (5 - 1) = 99}", True),  # what stands behind the equals sign does not matter
        (r"\boxed{3 \times (5 - 1)}", True),
        (r"\boxed{3 \cdot (5 - 1)}", True),
        (r"\boxed{3 * (5 - 1)} or \boxed{1 + 1}", False),
        (r"\boxed{1 + 1} or \boxed{3 * (5 - 1)}", True),
        ("<answer>3 * (5 - 1)</answer>", False),  # without a box the whole text is taken, with its tags
        (r"\boxed{3 * (5 - 1) <answer>3 * (5 - 1)</answer>", True),  # but an open box falls back to the tags
        ("3 * (5 - 1)", True),
        ("3 * (5 - 1) = 12", True),
        (r"\boxed{12 = 3 * (5 - 1)}", False),
        (r"\boxed{3 * 5 - 1 - 3 + 1}", False),
        (r"\boxed{15 - 3}", False),
        ("\\boxed{3 \u00d7 (5 - 1)}", False),
        (r"\boxed{$3 * (5 - 1)$}", False),
        (r"\boxed $3 * (5 - 1)$", False),  # everything after the space is cut at the first dollar sign
        ("\\boxed 3 * (5 - 1)$", True),
        (r"\boxed{(3 * (5 - 1)}", False),
        (r"\boxed{03 * (5 - 1)}", False),
        (r"\boxed{3.0 * (5 - 1)}", False),  # the 0 is a number more
    ])  # fmt: skip
    def test_what_is_right(self, text, right):
        assert d1.countdown_right(text, [3, 5, 1], 12) is self.published(text, [3, 5, 1], 12) is right

    def test_powers_too_are_pythons(self):
        assert d1.countdown_right(r"\boxed{1 ** (99 * 98)}", [1, 98, 99], 1)
        assert d1.countdown_right(r"\boxed{-((-9) ** .5) ** 2}", [9, 5, 2], 9)  # by way of a complex number
        assert not d1.countdown_right(r"\boxed{9 ** 9 ** 9}", [9, 9, 9], 9)


class TestSudoku:
    """Five patterns in order; the first that holds something; padded with zeros or cut; right cells among the empty ones."""

    PATTERNS = (
        r"<answer>.*?```\s*([\d\s]+)```",
        r"<answer>(.*?)(?:<\|eot_id\|>|<\|endoftext\|>|</answer>)",
        r"</answer>\s*(.*?)(?:<\|eot_id\|>|<\|endoftext\|>|$)",
        r".*?(\d{16})\s*</answer>",
        r"\b(\d{16})\b",
    )
    FRAGMENTS = (
        *TAGS, "```", "``", "<|eot_id|>", "<|endoftext|>", "1234", "12343412", "1234341221434321", "1234 3412\n2143 4321", "0",
        "x",
        "1234341221434321\n</answer>", "٣", "_", "\u2003", "\x1c",
    )  # fmt: skip

    @classmethod
    def published(cls, text):
        found = (re.search(pattern, text, re.DOTALL) for pattern in cls.PATTERNS)
        held = (match[1].strip() for match in found if match)
        return re.sub(r"\s", "", next(filter(None, held), ""))

    @MANY
    @given(text=texts(*FRAGMENTS))
    @example(text="<answer>``` ```1```")
    @example(text="<answer>````1234```</answer>")
    @example(text="11234341221434321 </answer>")
    @example(text="</answer>  1\n")
    @example(text="²" * 16 + "</answer>")
    def test_same_grid(self, text):
        assert d1.sudoku_grid(text) == self.published(text)

    @settings(max_examples=200, deadline=None)
    @given(text=texts(*FRAGMENTS, most=5))
    def test_same_cells(self, text):
        puzzle, solution = "1004002001030020", "1234342141432321"
        grid = (self.published(text) + "0" * 16)[:16]
        empty = [place for place in range(16) if puzzle[place] == "0"]
        assert d1.sudoku_cells(text, puzzle, solution) == (sum(grid[place] == solution[place] for place in empty), len(empty))

    @pytest.mark.parametrize(("text", "grid"), [
        ("<answer>\n1234341221434321\n</answer>", "1234341221434321"),
        ("<answer>1234\n3412\n2143\n4321</answer>", "1234341221434321"),
        ("<answer>\n```\n1234\n3412\n```</answer>", "12343412"),
        ("<answer>1234341221434321<|eot_id|>", "1234341221434321"),
        ("<answer></answer>\n1234341221434321", "1234341221434321"),
        ("1234341221434321</answer>", "1234341221434321"),
        ("It is 1234341221434321.", "1234341221434321"),
        ("<answer>the grid is 1234341221434321</answer>", "thegridis1234341221434321"),
        ("<answer>|1|2|</answer>", "|1|2|"),
        ("<answer>1234341221434321", "1234341221434321"),  # by the last pattern
        ("no grid", ""),
    ])  # fmt: skip
    def test_what_it_reads(self, text, grid):
        assert d1.sudoku_grid(text) == self.published(text) == grid

    def test_the_score_counts_cells(self):
        problem, task = sample("sudoku", 0), find_task("sudoku")
        empty = [place for place in range(16) if problem.facts["puzzle"][place] == "0"]
        half = "".join("5" if place in empty[: len(empty) // 2] else digit for place, digit in enumerate(problem.answer))
        for answer, right in (
            (problem.answer, len(empty)),
            (half, len(empty) - len(empty) // 2),
            (problem.answer + "7", len(empty)),
        ):
            score = task.score(problem, f"<answer>{answer}</answer>", "d1")
            assert (score.right, score.of) == (right, len(empty))
        assert task.score(problem, "", "d1").right == 0
