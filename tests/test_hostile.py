"""Completions that are out to break a scorer: none raises, none is right, none takes long."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.tasks import equivalence
from unmask.tasks.problem import Problem
from unmask.tasks.task import TASKS

PROBLEMS = {
    "gsm8k": Problem("", "18"),
    "math500": Problem("", r"\frac{\pi}{2}"),
    "countdown": Problem("", "", {"numbers": (3, 5, 1), "target": 12}),
    "sudoku": Problem("", "1234341221434321", {"puzzle": "1030040000400020"}, boxed=False),
    "algebra": Problem("", r"\frac{1}{2}"),
}
SCORERS = [(task, scorer) for task in PROBLEMS for scorer in TASKS[task].scorers]
DIFFERENT = [(task, scorer) for task, scorer in SCORERS if task != "algebra"]
"""Algebra's scorers read as those of MATH and GSM8K do."""
MILLION = 10**6
LIMIT = 2.0
"""Seconds. An idle core takes 40 ms for a megabyte; what is not linear in it takes minutes, and that is what is refused here:
machines are noisy, and milliseconds are not tested."""
TRIES = 3


@pytest.fixture(scope="module", autouse=True)
def warm():
    """The process that compares is there before the clock runs."""
    assert equivalence.same(r"\sqrt{4}", r"2^{1}\cdot 1")


def check(text, scorers=SCORERS):
    """Whatever the task and the scorer: not right, no exception, in time."""
    for task, scorer in scorers:
        best = float("inf")
        for _ in range(TRIES):
            start = time.perf_counter()
            score = TASKS[task].score(PROBLEMS[task], text, scorer)
            best = min(best, time.perf_counter() - start)
            assert not score.solved, (task, scorer, text[:40])
            if best < LIMIT:
                break
            equivalence._worker().ask.cache_clear()
        assert best < LIMIT, f"{task} by {scorer}: {1000 * best:.0f} ms for {text[:40]!r}..."


def test_every_scorer_is_tried():
    tried = {TASKS[task].scorers[scorer] for task, scorer in SCORERS}
    assert tried == {scorer for task in TASKS.values() for scorer in task.scorers.values()}


FRAGMENTS = [
    "\\boxed{", "\\boxed", "\\boxed ", "\\boxed{}", "\\boxed{7}", "\\boxed{x}", "\\boxed{\n", "\\boxed{inf", "\\fbox{", "{",
    "}", "{}", "}{",
    "<answer>", "</answer>", "<answer></answer>", "<answer>\\boxed{", "<|eot_id|>", "1", "1 ", "1.", "-1", "1\n", "1=", "=",
    "= 1", "/", "1/1",
    "```", "```1", "``` ", "9**", "9^{", "9^", "!", "(", "((((", "()", ")", "+", "-", "\\frac", "\\frac1", "\\frac{1}{2}",
    "\\sqrt", "\\sqrt1",
    "\\text{ ", "\\text{", "\\times", "\\left", "$", "_", "|", "a", "inf ", " ", "\n", "\t \n", "\x00", "\ud800", "\u200f",
    "٣", "²", "\uff11", "\U0001d7d9",
    "\u2028", "é",
]  # fmt: skip
PLACES = {"alone": "{}", "in a fence": "<answer>```{}```</answer>", "in a box": "<answer>\\boxed{{{}}}</answer>"}


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=ascii)
@pytest.mark.parametrize("place", ["alone", "in a fence"])
def test_a_megabyte_of_it(fragment, place):
    check(PLACES[place].format(fragment * (MILLION // len(fragment))), DIFFERENT)


@pytest.mark.parametrize(("before", "fragment", "after"), [
    ("<answer>\\boxed{", "\\boxed{x}", "}</answer>"),
    ("<answer>\\boxed{", "}", "}</answer>"),
    ("<answer>\\boxed{", "\u2028", "}</answer>"),
    ("<answer>\\boxed{", "\ud800", "}</answer>"),
    ("", "\\boxed{\n", "}"),
    ("", "\\boxed{", "}"),
    ("", "\\boxed{a\\boxed{\n", "}"),
    ("\\boxed{", "{}", "}"),
    ("\\boxed", "{", ""),
    ("\\boxed{", "\\boxed{1}", ""),
    ("", "1", "=1"),
    ("", "1", "=x"),
    ("", "(", "=1"),
    ("1=", "1=", ""),
    ("<answer>```", "1", "``"),
    ("<answer>```", " \n", "x```"),
    ("<answer>", "```1", ""),
    ("", "1", "</answer>"),
    ("1", " ", "</answer>"),
    ("", " ", "</answer>1"),
    ("</answer>", " ", ""),
    ("</answer>", "\n", "1"),
    ("", "1111111111111111x", ""),
    ("", "111111111111111 ", ""),
    ("<answer>", "1.", "x</answer>"),
    ("<answer>x", "1 ", "x</answer>"),
    ("\\boxed{x", "1 ", "x}"),
    ("\\boxed{", "a", "1 1}"),
    ("\\boxed{", "\\text{ a}", "}"),
])  # fmt: skip
def test_a_megabyte_between(before, fragment, after):
    check(before + fragment * (MILLION // len(fragment)) + after, DIFFERENT)


@pytest.mark.parametrize("depth", [1, 3, 20, 1000, MILLION // 2])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [("{", "}"), ("(", ")"), ("[", "]"), ("\\sqrt{", "}"), ("\\boxed{", "}"), ("\\frac{1}{", "}"), ("-(", ")")],
)
def test_nested(opening, closing, depth):
    depth = min(depth, MILLION // len(opening))
    check(f"\\boxed{{{opening * depth}1{closing * depth}}}")
    check(f"<answer>{opening * depth}1{closing * depth}</answer>")


POWERS = [
    "9**9**9", "9**9**9**9", "9 ** 9 ** 9 ** 9", "(9**9)**9**9", "9^{9^{9}}", "9^{9^{9^{9}}}", "9^9^9", "(9^{99})^{99}",
    r"\left(9^{99}\right)^{99}", "{9^{99}}^{99}",
    "9^{999999999}", "9^{-999999999}", "99999999!", "9!!!", "(9!)!", r"\frac{9^{9^{9}}}{9}", r"\sum_{i=1}^{10^9} i",
    r"\prod_{i=1}^{9^9} i", r"\int_0^{9^9} x",
    r"\lim_{n\to\infty} n", "1e999", "-1e999", "1e-999", "1" * 5000, "0." + "1" * 5000, "1/" + "1" * 5000, "1/0", "0/0",
    "0**-1", "(-9)**.5", "inf", "nan", "-nan",
    "5 - 3 + 1" * 100, "+" * 500 + "1", "-" * 900 + "1", "(" * 190 + "1" + ")" * 190, "1" + "+1" * 499, "1 if 1 else 1",
    "__import__('os')", "().__class__",
    "1,000,000,000", "1_000", "0x12", "0b1", "1j", "...", "1 .real", "lambda: 7", "x:=7", "[7]*10**9",
]  # fmt: skip


@pytest.mark.parametrize("text", POWERS, ids=lambda text: text[:20])
def test_what_would_be_computed_forever(text):
    check(text)
    check(f"\\boxed{{{text}}}")
    check(f"<answer>{text}</answer>")


def test_powers_of_the_right_numbers():
    """Countdown's own numbers in a tower."""
    for text in ("9**9**9", "(9**9)**9", "9**(9**9)", "9**9*9", "9//9**9", "-9**-9**9", "9**-9**-9"):
        problem = Problem("", "", {"numbers": (9, 9, 9), "target": 81})
        start = time.perf_counter()
        assert not TASKS["countdown"].score(problem, f"\\boxed{{{text}}}", "d1").solved
        assert not TASKS["countdown"].score(problem, f"\\boxed{{{text}}}", "strict").solved
        assert time.perf_counter() - start < 10


DIGITS = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
SCRIPTS = {
    name: "".join(unicodedata.lookup(f"{name} {digit}") for digit in DIGITS)
    for name in (
        "ARABIC-INDIC DIGIT",
        "DEVANAGARI DIGIT",
        "FULLWIDTH DIGIT",
        "MATHEMATICAL BOLD DIGIT",
        "SUPERSCRIPT",
        "SUBSCRIPT",
    )
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_digits_of_other_scripts_are_not_right(script):
    def written(text):
        return text.translate(str.maketrans("0123456789", SCRIPTS[script]))

    for text in ("18", r"\frac{\pi}{2}", r"\frac{1}{2}", "3 * (5 - 1)", "1234341221434321"):
        for answer in (
            rf"\boxed{{{written(text)}}}",
            f"<answer>{written(text)}</answer>",
            written(text),
            f"<answer>{written(text)}1</answer>",
        ):
            for task, scorer in SCORERS:
                if (task, scorer) != ("gsm8k", "d1"):
                    assert not TASKS[task].score(PROBLEMS[task], answer, scorer).solved, (task, scorer, answer)


def test_but_the_published_scorer_reads_them_as_pythons_float_does():
    """d1 to the letter: float("١٨") is 18.0; superscripts are no digits to it."""
    for name, digits in SCRIPTS.items():
        read = TASKS["gsm8k"].score(PROBLEMS["gsm8k"], rf"\boxed{{{digits[1]}{digits[8]}}}", "d1").solved
        assert read is name.endswith("DIGIT")


@pytest.mark.parametrize(
    "mark", ["\x00", "\ud800", "\u200f", "\u202e", "\u200b", "\ufeff", "\u0301", "\x1b[2J", "\r", "\x85"], ids=ascii
)
def test_marks_between_the_digits_are_not_right(mark):
    for text in (
        f"1{mark}8",
        rf"\frac{{1{mark}1}}{{2}}",
        f"3 * (5{mark}5 - 1)",
        f"12343412{mark}1434321",
        f"{mark}",
        f"7{mark}",
        f"{mark}7",
    ):
        check(rf"\boxed{{{text}}}")
        check(f"<answer>{text}</answer>")
        check(text)


@pytest.mark.parametrize("text", [
    "<answer>", "</answer>", "<answer", "answer>", "<answer>18", "<answer>\\boxed{18", "<answer>\\boxed{7",
    "</answer>18<answer>", "<ANSWER>18</ANSWER>",
    "<answer>\\boxed{</answer>}", "<answer>\\boxed{7</answer>8}", "\\boxed", "\\boxed{", "\\boxed ", "\\boxed $",
    "\\boxed}{18", "\\fbox{18}", "\\fbox", "{18}", "```18```",
    "<answer>```18", "<answer>```18``</answer>", "<answer>17 18 19</answer>", "\\boxed{17 or 18}", "\\boxed{18 or 17}", "",
    " ", "\n", "\\", "$", "=", "\\text{ ", "\\frac", "\\sqrt", "/",
])  # fmt: skip
def test_unfinished(text):
    """Of these, only what states 18 in its tags, in a box that lacks its end or is the first number, can be right."""
    stated = {
        ("gsm8k", "d1"): {"\\boxed{18 or 17}", "<answer>```18``</answer>"},
        ("gsm8k", "strict"): {"<answer>18", "<answer>\\boxed{18"},
    }
    for task, scorer in SCORERS:
        assert TASKS[task].score(PROBLEMS[task], text, scorer).solved is (text in stated.get((task, scorer), ()))


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.characters(codec=None, categories=None), max_size=60), place=st.sampled_from(sorted(PLACES)))
def test_any_text(text, place):
    for task, scorer in SCORERS:
        if (task, scorer) != ("math500", "strict"):
            score = TASKS[task].score(PROBLEMS[task], PLACES[place].format(text), scorer)
            assert 0 <= score.right <= score.of


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(st.sampled_from([*FRAGMENTS, "7", "\\pi"]), max_size=30))
def test_any_mixture(parts):
    text = "".join(parts)
    assert not TASKS["math500"].score(PROBLEMS["math500"], text, "d1").solved
    for task, scorer in SCORERS:
        if (task, scorer) != ("math500", "strict"):
            TASKS[task].score(PROBLEMS[task], text, scorer)


@pytest.mark.parametrize("end", ["<|endoftext|>", " ", "\n", "x", "\\boxed", "{", "<answer>"])
def test_what_is_right_stays_right_before_a_megabyte(end):
    tail = end * (MILLION // len(end))
    right = {
        "gsm8k": "18",
        "math500": r"\frac{\pi}{2}",
        "countdown": "3 * (5 - 1)",
        "sudoku": "1234341221434321",
        "algebra": r"\frac{1}{2}",
    }
    for task, answer in right.items():
        text = f"<answer>{answer}</answer>" if task == "sudoku" else rf"<answer>\boxed{{{answer}}}</answer>"
        assert TASKS[task].score(PROBLEMS[task], text + tail, "strict").solved, task
        assert TASKS[task].score(PROBLEMS[task], "x" * MILLION + text, "strict").solved, task
