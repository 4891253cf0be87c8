"""The strict scorer: what is right is right in any spelling, what is wrong is wrong, and no number is rounded."""

import time
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from unmask import InputError
from unmask.tasks import equivalence, rational, strict, sudoku
from unmask.tasks.extract import answered, final, last_box, tagged
from unmask.tasks.problem import Problem
from unmask.tasks.task import find_task

SOME = settings(max_examples=150, deadline=None)


def right(task, problem, completion):
    return find_task(task).score(problem, completion, "strict").solved


class TestWhereTheAnswerStands:
    @pytest.mark.parametrize(("text", "answer"), [
        (r"\boxed{1} <answer>\boxed{2}</answer> \boxed{3}", "2"),
        (r"\boxed{1} <answer>2</answer>", "2"),
        (r"<answer>first \boxed{1}, no, \boxed{2}</answer>", "2"),
        (r"\boxed{1} and \boxed{2}", "2"),
        (r"\boxed{1} <answer>\boxed{...}</answer>", "1"),
        (r"\boxed{1} <answer> </answer>", "1"),
        (r"\boxed{1} <answer> </answer> \boxed{3}", "3"),
        (r"\boxed{...}", None),
        (r"<answer>\boxed{\frac{1}{2}}</answer>", r"\frac{1}{2}"),
        (r"<answer>\boxed {2}</answer>", "2"),
        (r"<answer>\boxed{2}<|eot_id|><|endoftext|>", "2"),
        ("<answer>2<|eot_id|><|endoftext|>", "2"),
        ("<answer>2", "2"),
        ("<answer>\\boxed{2\n</answer>", "2"),  # cut off before the brace
        (r"</answer> <answer>\boxed{2}</answer>", "2"),  # the reasoning closed by the wrong tag
        (r"<answer>\boxed{2} miles per hour.</answer>", "2"),
        (r"\boxed{1 + \boxed{2}}", r"1 + \boxed{2}"),
        (r"\boxed{1} and \boxed{2", "1"),
        ("2", None),
        ("", None),
    ])  # fmt: skip
    def test_the_box_in_the_tags_else_the_tags_else_the_last_box(self, text, answer):
        assert final(text) == answer

    @SOME
    @given(before=st.text("ab{} \n"), inside=st.text("ab1 \n", min_size=1), depth=st.integers(0, 4))
    def test_balanced_braces_belong_to_the_box(self, before, inside, depth):
        inside = "{" * depth + inside + "}" * depth
        assume(inside.strip())
        assert last_box(f"{before}\\boxed{{{inside}}}") == inside

    @SOME
    @given(parts=st.lists(st.sampled_from(["\\boxed{", "\\boxed {", "{", "}", "}", "a", ".", " "]), max_size=14))
    def test_the_last_box_is_what_a_stack_of_braces_says(self, parts):
        opened, found = [], []
        for place, part in enumerate(parts):
            if part.endswith("{"):
                opened.append(place)
            elif part == "}" and opened:
                start = opened.pop()
                inside = "".join(parts[start + 1 : place])
                if parts[start] != "{" and inside.strip(". "):
                    found = [inside]  # closes later than all before: around them, or behind
        assert last_box("".join(parts)) == (found[-1] if found else None)

    @given(inside=st.text("ab<>/ \n"))
    def test_tags(self, inside):
        assert tagged(f"x<answer>{inside}</answer>y</answer>") == answered(f"x<answer>{inside}</answer>y</answer>") == inside
        assert tagged(f"<answer>{inside}") is None
        assert answered(f"<answer>{inside}") == inside
        assert answered(inside) is None


def spellings(number):
    """A whole number as people and models write it."""
    digits, commas = str(number), f"{number:,}"
    return [
        digits, commas, commas.replace(",", "{,}"), commas.replace(",", ",\\!"), f"${commas}", f"\\${digits}", f"{digits}.0",
        f"{digits}.00", f"{digits}.", f" {digits} ", f"${digits}$", f"\\({digits}\\)", f"**{digits}**", f"{digits} apples",
        f"{digits}\\text{{ cm}}", f"{digits} \\text{{ dollars}}", f"{digits} \\mathrm{{kg}}", f"\\text{{{digits}}}",
        f"x = {digits}",
        f"\\text{{Total}} = {commas}", f"{digits} miles per hour", f"{digits} km/h", f"{digits}cm", f"{digits}pens",
        f"{digits} m",
        f"{digits} a day", f"{digits}%", f"{digits}\\%", f"{digits}^\\circ", f"{digits}^{{\\circ}}", f"{digits}°",
        f"€{digits}", f"+{digits}",
        f"{2 * number}/2", f"\\frac{{{3 * number}}}{{3}}", f"3 + 4 = {digits}", f"x = 3 \\cdot 4 = {digits} pens",
    ]  # fmt: skip


class TestNumbers:
    @SOME
    @given(number=st.integers(0, 10**9), form=st.integers(0, 100))
    @example(number=1000, form=1)
    def test_right_in_any_spelling(self, number, form):
        text = spellings(number)[form % len(spellings(number))]
        for completion in (
            rf"\boxed{{{text}}}",
            rf"<answer>{text}</answer>",
            rf"\boxed{{7}} <answer>\boxed{{{text}}}</answer>",
        ):
            assert right("gsm8k", Problem("", str(number)), completion), text
            assert right("words", Problem("", f"{number:,}"), completion), text

    @SOME
    @given(number=st.integers(0, 10**6), other=st.integers(0, 10**6), form=st.integers(0, 100))
    @example(number=1, other=1000, form=1)
    def test_wrong_in_any_spelling(self, number, other, form):
        assume(number != other)
        text = spellings(other)[form % len(spellings(other))]
        assert not right("gsm8k", Problem("", str(number)), rf"<answer>\boxed{{{text}}}</answer>")

    @SOME
    @given(above=st.integers(-50, 50), below=st.integers(1, 50), times=st.integers(1, 5))
    def test_fractions_are_exact(self, above, below, times):
        value = Fraction(above, below)
        sign, size = "-" if above < 0 else "", abs(above)
        for text in (f"{above}/{below}", rf"\frac{{{above}}}{{{below}}}", rf"\dfrac{{{above}}}{{{below}}}",
                     rf"{sign}\frac{{{size * times}}}{{{below * times}}}", rf"{sign}\tfrac {{{size}}} {{{below}}}",
                     f"({above})/({below})"):  # fmt: skip
            assert rational.number(text) == value, text
        near = value + Fraction(1, 10**9)
        assert rational.number(f"{near.numerator}/{near.denominator}") != value

    @SOME
    @given(number=st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**6), max_value=10**6))
    def test_decimals_are_exact(self, number):
        assert rational.number(f"{number:f}") == Fraction(number)
        assert rational.number(f"${abs(number):,.2f}") == Fraction(f"{abs(number):.2f}")

    @pytest.mark.parametrize("text", [
        "3 or 4", "x = 3 or x = 4", "x = 4, y = 3", r"x=4\text{ or }x=3", "x = 4; y = 3", "1,00", "1,0000", "12,34", "1 000",
        "3 4", "3 + 0",
        "4 - 1", "3 x", "3 i", "3x", "3xy", "3 pi", "3 sin x", "3^2", "3**1", "3e0", "3!", "--3", "3 (4)", "3:00", "3-3",
        "about 3", "three",
        r"3\pi", r"3\sqrt{2}", r"\sqrt{9}", "3/0", "3//1", "0x3", "3_0", "٣", "\uff13", "³", "", " ", "=", "$", "-", ".",
        "1/1/1",
    ])  # fmt: skip
    def test_what_is_no_number(self, text):
        assert rational.number(text) is None

    def test_a_longer_text_is_no_number(self):
        assert rational.number("1" * rational.LONGEST) is not None
        assert rational.number("1" * (rational.LONGEST + 1)) is None


class TestForms:
    """Where a fraction is to be simplified, its terms count."""

    @pytest.mark.parametrize(("text", "same"), [
        (r"\frac{1}{2}", True), ("1/2", True), (r"$\frac12$", True), (r"x = \dfrac{1}{2}", True), (r"\frac{1}{2}\text{ cm}",
        True),
        (r"\frac{2}{4}", False), ("2/4", False), ("0.5", False), ("50%", False), ("1", False), ("2/1", False), ("-1/2", False),
    ])  # fmt: skip
    def test_lowest_terms(self, text, same):
        assert right("algebra", Problem("", r"\frac{1}{2}"), rf"\boxed{{{text}}}") is same

    @given(number=st.integers(0, 999))
    def test_whole_numbers_have_no_terms(self, number):
        assert right("algebra", Problem("", str(number)), rf"\boxed{{x = {number}}}")
        assert not right("algebra", Problem("", str(number)), rf"\boxed{{x = {number + 1}}}")


@st.composite
def trees(draw, numbers):
    """An expression over all the numbers, as text with brackets where needed or not, and its exact value."""
    if len(numbers) == 1:
        return str(numbers[0]), Fraction(numbers[0])
    split = draw(st.integers(1, len(numbers) - 1))
    left, a = draw(trees(numbers[:split]))
    right_, b = draw(trees(numbers[split:]))
    sign = draw(st.sampled_from("+-*/"))
    assume(sign != "/" or b != 0)
    value = a + b if sign == "+" else a - b if sign == "-" else a * b if sign == "*" else a / b
    space = draw(st.sampled_from(["", " ", "  "]))
    return f"({left}{space}{sign}{space}{right_})", value


class TestExpressions:
    @SOME
    @given(data=st.data(), numbers=st.lists(st.integers(0, 99), min_size=1, max_size=7))
    def test_arithmetic_is_exact(self, data, numbers):
        text, value = data.draw(trees(numbers))
        assert rational.value(text) == (value, numbers)
        assert rational.value(text.replace("*", r" \times ").replace("/", r"\div ")) == (value, numbers)
        assert rational.value(text.replace("*", "\u00d7").replace("/", "÷").replace("-", "\u2212")) == (value, numbers)
        assert rational.value(text.replace("(", r"\left(").replace(")", r"\right)")) == (value, numbers)

    @SOME
    @given(
        numbers=st.lists(st.integers(1, 99), min_size=2, max_size=8),
        signs=st.lists(st.sampled_from("+-*/"), min_size=7, max_size=7),
    )
    def test_products_go_before_sums_and_left_before_right(self, numbers, signs):
        text = str(numbers[0]) + "".join(f" {sign} {number}" for sign, number in zip(signs, numbers[1:], strict=False))
        terms = [[Fraction(numbers[0])]]
        for sign, number in zip(signs, numbers[1:], strict=False):
            if sign in "+-":
                terms.append([Fraction(number if sign == "+" else -number)])
            else:
                terms[-1].append(Fraction(number) if sign == "*" else 1 / Fraction(number))
        total = Fraction(0)
        for first, *factors in terms:
            product = first
            for factor in factors:
                product *= factor
            total += product
        assert rational.value(text) == (total, numbers)

    @SOME
    @given(data=st.data(), numbers=st.permutations([3, 5, 8]))
    def test_each_number_once(self, data, numbers):
        text, value = data.draw(trees(list(numbers)))
        assume(value.denominator == 1)
        problem = Problem("", "", {"numbers": (3, 5, 8), "target": int(value)})
        assert right("countdown", problem, rf"<answer>\boxed{{{text}}}</answer>")
        assert right("countdown", problem, rf"<answer>{text} = {value}</answer>")
        for wrong in (f"{text} + 3 - 3", f"{text} * 1", f"({text})", str(value), f"{text} + 1", text.replace("8", "(4 + 4)")):
            expected = wrong == f"({text})"
            assert right("countdown", problem, rf"<answer>\boxed{{{wrong}}}</answer>") is expected, wrong
        other = Problem("", "", {"numbers": (3, 5, 9), "target": int(value)})
        assert not right("countdown", other, rf"<answer>\boxed{{{text}}}</answer>")
        missed = Problem("", "", {"numbers": (3, 5, 8), "target": int(value) + 1})
        assert not right("countdown", missed, rf"<answer>\boxed{{{text}}}</answer>")

    @pytest.mark.parametrize(("text", "solved"), [
        ("3 * (5 - 1)", True), ("3 * (5 - 1) = 12", True), ("$3 * (5 - 1)$", True), (r"\(3 \cdot (5 - 1)\)", True),
        ("(5 - 1) * 3.", True),
        ("-3 * (1 - 5)", True), (r"\frac{3}{1} * 5", False), ("12 = 3 * (5 - 1)", False), ("3(5 - 1)", False), ("3 * (5 - 1",
        False),
        ("3 * (5 - 1))", False), ("3 ** 5 - 1", False), ("3 * (5 - 1) or 12", False), ("x = 3 * (5 - 1)", False),
        ("03 * (5 - 1)", True),
        ("3.0 * (5 - 1)", False), ("[5 - 1] * 3", False), ("", False), ("=", False), ("٣ * (5 - 1)", False),
    ])  # fmt: skip
    def test_what_reaches_the_target(self, text, solved):
        problem = Problem("", "", {"numbers": (3, 5, 1), "target": 12})
        assert right("countdown", problem, rf"<answer>\boxed{{{text}}}</answer>") is solved

    @pytest.mark.parametrize("text", ["1/0", "1/(1-1)", "", "()", "+", "1+", "1 1", "2^3", "2**3", "1.5", "a",
        "__import__('os')", "(" * 50 + "1" + ")" * 50, "1" * 31])  # fmt: skip
    def test_what_is_no_expression(self, text):
        assert rational.value(text) is None

    @given(depth=st.integers(0, 40))
    def test_brackets_go_so_deep(self, depth):
        found = rational.value("(" * depth + "7" + ")" * depth)
        assert (found is not None) is (depth <= 20)


class TestSudoku:
    @SOME
    @given(grid=st.sampled_from(sudoku.grids()), blanks=st.sets(st.integers(0, 15), min_size=1), form=st.integers(0, 8))
    def test_every_valid_grid_with_the_clues_is_right(self, grid, blanks, form):
        puzzle = "".join("0" if place in blanks else digit for place, digit in enumerate(grid))
        rows = [grid[start : start + 4] for start in range(0, 16, 4)]
        text = [
            f"<answer>\n{grid}\n</answer>", "<answer>" + "\n".join(rows) + "</answer>", rf"<answer>\boxed{{{grid}}}</answer>",
            "<answer>" + "\n".join("| " + " | ".join(row) + " |" for row in rows) + "</answer>",
            f"<answer>```\n{grid}\n```</answer>",
            f"<answer>{grid}<|eot_id|><|endoftext|>", "<answer>" + "\n".join(rows) + "<|endoftext|>", f"The grid is {grid}.",
            f"<answer>{list(map(int, grid))}</answer>",
        ][form]  # fmt: skip
        other = sudoku.solutions(puzzle)[-1]  # any valid grid will do, not only the one in the file
        score = find_task("sudoku").score(Problem("", other, {"puzzle": puzzle}), text, "strict")
        assert (score.right, score.of, score.solved, score.value) == (len(blanks), len(blanks), True, 1.0)

    @SOME
    @given(grid=st.sampled_from(sudoku.grids()), place=st.integers(0, 15), digit=st.sampled_from("0123456789"))
    def test_one_wrong_cell_costs_one_cell(self, grid, place, digit):
        assume(grid[place] != digit)
        puzzle = "".join("0" if here == place or here % 5 == 0 else old for here, old in enumerate(grid))
        assume(sudoku.solutions(puzzle) == [grid])
        score = find_task("sudoku").score(
            Problem("", grid, {"puzzle": puzzle}), f"<answer>{grid[:place]}{digit}{grid[place + 1 :]}</answer>", "strict"
        )
        assert (score.right, score.of, score.solved) == (puzzle.count("0") - 1, puzzle.count("0"), False)

    @given(digits=st.text("1234", max_size=40).filter(lambda text: len(text) != 16))
    def test_another_count_of_digits_is_no_grid(self, digits):
        assert strict.read_grid(f"<answer>{digits}</answer>") is None
        assert strict.read_grid(f"1234341221434321 <answer>{digits}</answer>") is None
        assert strict.read_grid(digits) is None

    def test_a_grid_that_changes_a_clue_is_no_solution(self):
        grid, other = "1234341221434321", "1234432121433412"
        assert other in sudoku.grids()
        puzzle = "0" + grid[1:]
        score = find_task("sudoku").score(Problem("", grid, {"puzzle": puzzle}), f"<answer>{other}</answer>", "strict")
        assert (score.right, score.of, score.solved) == (1, 1, False)

    def test_words_in_the_answer_are_no_grid(self):
        assert strict.read_grid("<answer>the grid is 1234341221434321</answer>") is None
        assert strict.read_grid("<answer>1234341221434321 or 1234432121433412</answer>") is None


PAIRS = [
    (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}", True),
    (r"2\sqrt{3}", r"\sqrt{12}", True),
    ("x^2+2x+1", "(x+1)^2", True),
    ("x^4 + x^5", "x^5 + x^4", True),
    ("y^3x^2", "x^2y^3", True),
    (r"\frac{x}{2}", "x/2", True),
    (r"\{1,2\}", r"\{2,1\}", True),
    (r"x \in [-2,7]", "[-2,7]", True),
    (r"\left( 3, \frac{\pi}{2} \right)", r"(3, \pi/2)", True),
    (r"(-\infty, 2)\cup(3,\infty)", r"(-\infty,2) \cup (3,\infty)", True),
    (r"\text{Evelyn}", "Evelyn", True),
    (r"1-\sqrt{19},1+\sqrt{19}", r"1\pm\sqrt{19}", True),
    (r"\begin{pmatrix}1/2\\3\end{pmatrix}", r"\begin{pmatrix} \frac{1}{2} \\ 3 \end{pmatrix}", True),
    (r"The answer is $2\sqrt{3}$.", r"\sqrt{12}", True),
    (r"**$\frac{\pi}{2}$**", r"\pi/2", True),
    ("2**3", "8", True),
    ("10,080", r"10,\!080", True),
    (r"1\frac{1}{2}", "3/2", True),
    ("(2,1)", "(1,2)", False),
    ("(1,2]", "[1,2)", False),
    ("x^2+2x+2", "(x+1)^2", False),
    (r"\frac{\sqrt{2}}{3}", r"\frac{1}{\sqrt{2}}", False),
    ("x<5", "x>5", False),
    (r"\infty", r"-\infty", False),
    ("6+5i", "6-5i", False),
    ("y = 2x + 4", "y = 2x + 3", False),
    ("3x", "3", False),
    ("3 x", "3", False),
    ("12 i", "12", False),
    ("2**3", "2", False),
    ("9**9**9", "9", False),
    ("52_9", "52_8", False),
    ("x = 5, y = 7", "7", False),
    ("x = 1 or x = 2", "2", False),
    (r"5$ and $6", "6", False),
    (r"$\sqrt{25}$ or $6$", "5", False),
    (r"6 or $\sqrt{25}$", "5", False),
    ("3.1416", r"\pi", False),
    ("0.33", r"\frac{1}{3}", False),
    ("٣", "3", False),
]


class TestMath:
    @pytest.mark.parametrize(("answer", "truth", "same"), PAIRS)
    def test_equal_and_different(self, answer, truth, same):
        assert equivalence.same(answer, truth) is same
        assert right("math500", Problem("", truth), rf"<answer>\boxed{{{answer}}}</answer>") is same

    def test_every_reference_is_itself(self):
        for _, truth, _ in PAIRS:
            assert equivalence.same(truth, truth)

    @pytest.mark.parametrize("text", [
        "9^{9^{9}}", "9^9^9", "(9^9)^9", r"\left(9^{99}\right)^{99}", "{9^{99}}^{99}", "9^{999}", "99999!", "(9!)!",
        r"\sum_{n=1}^{9} n", r"\lim x",
        "1" * 40, "((((((1))))))", "{{{{{{1}}}}}}", "|x|" * 4, "x_" * 7, "x+" * 80,
    ])  # fmt: skip
    def test_what_would_take_too_long_is_never_asked(self, text, monkeypatch):
        monkeypatch.setattr(equivalence, "_worker", lambda: pytest.fail("asked"))
        assert not equivalence.same(text, "9")
        assert equivalence.same(text, text)

    def test_a_long_answer_can_still_be_the_reference(self):
        truth = "x + " * 80 + "1"
        assert equivalence.same(f" {truth} ", truth)
        assert equivalence.same(truth.replace(" ", ""), truth)
        assert not equivalence.same(f"{truth}2", truth)


class TestTheWorker:
    @pytest.fixture
    def worker(self):
        worker = equivalence.Worker()
        yield worker
        worker.stop()

    def test_it_is_replaced_when_it_took_too_long(self, worker, monkeypatch):
        assert worker.ask(r"\sqrt{4}", "2")
        first = worker.process
        monkeypatch.setattr(equivalence, "SECONDS", 0.05)
        start = time.monotonic()
        assert not worker.ask("(x+y+z)^{99}" * 12, "x")  # some seconds' work
        assert time.monotonic() - start < 1
        assert worker.process is None
        assert not first.is_alive()
        monkeypatch.undo()
        assert worker.ask(r"\sqrt{9}", "3")
        assert worker.process.pid != first.pid

    def test_it_is_replaced_when_it_died(self, worker):
        assert worker.ask(r"\sqrt{4}", "2")
        worker.process.kill()
        worker.process.join()
        assert worker.ask(r"\sqrt{9}", "3")

    def test_an_answer_is_computed_once(self, worker, monkeypatch):
        assert worker.ask(r"\sqrt{4}", "2")
        worker.stop()
        assert worker.ask(r"\sqrt{4}", "2")
        assert worker.process is None

    def test_without_the_library_the_fix_is_named(self, monkeypatch):
        monkeypatch.setattr(equivalence, "find_spec", lambda name: None)
        with pytest.raises(InputError, match=r"needs math-verify; pip install 'unmask\[math\]'"):
            equivalence.Worker()

    def test_a_process_that_does_not_start_is_one_line(self, worker, monkeypatch):
        monkeypatch.setattr(equivalence, "_serve", print)
        with pytest.raises(InputError, match="does not start"):
            worker.ask("1", "x")
        assert worker.process is None


def test_permutations_of_lists_are_the_same_set():
    for order in permutations(["1", "2", "3"]):
        assert equivalence.same(",".join(order), "1,2,3")
