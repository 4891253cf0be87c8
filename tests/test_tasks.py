"""Problems from generators and files, prompts, and completions out of files."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask import InputError
from unmask.tasks import countdown, published, rational, sources, sudoku
from unmask.tasks.completions import read_completions
from unmask.tasks.families import FAMILIES, LEVELS, sample
from unmask.tasks.problem import BUCKETS, SPLITS, STYLES, TEST_BUCKETS, Problem, draw, fingerprint
from unmask.tasks.task import SCORERS, TASKS, Score, find_task, load_prompt

MANY = {family: 14 if family == "countdown" else 100 for family in FAMILIES}
"""How many problems are looked at; with every type checked, those of Countdown take a while."""
OURS = [task for task in TASKS.values() if task.family]
EQUATION = re.compile(r"([0-9(][0-9 +\-*/()]*[0-9)]) = (?=([0-9]+)\b(?! [+\-*/]))")
"""The two sides of a sum whose right side is a number; `12 = 3 * 4` is none, and of `x = 3 * 4 = 12` it is the last part."""


def drawn(family, count, *, level="easy", split="train", seed=0):
    """The keys and questions that a family's generator gives, in order."""
    keys = []

    def make(rng):
        made = FAMILIES[family].make(rng, FAMILIES[family].levels[level])
        keys.append(None if made is None else made[0])
        return made

    found = []
    for index in range(count):
        problem = draw(family, make, index=index, seed=seed, split=split, published=published.fingerprints(family))
        found.append((keys[-1], problem.question))
    return found


class TestGenerators:
    def test_every_family_has_every_level_and_a_task(self):
        assert all(tuple(family.levels) == LEVELS for family in FAMILIES.values())
        assert {task.family for task in OURS} == set(FAMILIES)

    def test_another_process_makes_the_same(self):
        asked = [(family, level, split, seed, index)
                 for family in FAMILIES for level in LEVELS for split in SPLITS for seed, index in ((0, 0), (7, 123), (2**62,
                 10**9))]  # fmt: skip
        program = (
            "import json, sys\nfrom unmask.tasks.families import sample\n"
            "print(json.dumps([repr(sample(f, i, level=l, split=s, seed=d)) for f, l, s, d, i in json.load(sys.stdin)]))"
        )
        ran = subprocess.run(
            [sys.executable, "-c", program], input=json.dumps(asked), capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": "1"}
        )  # fmt: skip
        here = [repr(sample(family, index, level=level, split=split, seed=seed)) for family, level, split, seed, index in asked]
        assert json.loads(ran.stdout) == here

    @pytest.mark.parametrize("task", OURS, ids=lambda task: task.name)
    @pytest.mark.parametrize("level", LEVELS)
    def test_a_response_in_any_style_is_right_by_both_scorers(self, task, level):
        prefill = task.prompt().prefill
        for problem in task.problems(30, level=level, seed=5):
            for style in STYLES:
                for completion in (problem.response(style), prefill + problem.response(style) + "<|eot_id|><|endoftext|>"):
                    for scorer in SCORERS:
                        score = task.score(problem, completion, scorer)
                        assert (score.right, score.solved, score.value) == (score.of, True, 1.0), (scorer, style, completion)

    @pytest.mark.parametrize("task", OURS, ids=lambda task: task.name)
    def test_another_problems_response_is_wrong_by_both_scorers(self, task):
        first, *others = task.problems(30, split="train", seed=6)
        for other in others:
            if other.answer != first.answer:
                for scorer in SCORERS:
                    assert not task.score(first, other.response(), scorer).solved

    @pytest.mark.parametrize("family", FAMILIES)
    @pytest.mark.parametrize("level", LEVELS)
    def test_every_sum_in_a_solution_is_right(self, family, level):
        seen = 0
        for index in range(MANY[family]):
            problem = sample(family, index, level=level, seed=8)
            for line in (*problem.long, *problem.worked, *problem.terse):
                for left, right in EQUATION.findall(line):
                    if not line.startswith("The question is"):
                        assert rational.value(left)[0] == int(right), line
                        seen += 1
        assert seen > MANY[family] or family == "sudoku"

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_solution_is_written_shorter_and_shorter_and_ends_in_the_answer(self, family):
        for index in range(50):
            problem = sample(family, index, seed=9)
            worked, terse, direct = (len(problem.response(style)) for style in STYLES[1:])
            assert worked > terse > direct
            assert all(problem.response(style).split("</reasoning>")[1].count(problem.answer) == 1 for style in STYLES)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_train_and_test_share_no_problem(self, family):
        keys, questions = {split: set() for split in SPLITS}, {split: set() for split in SPLITS}
        for split in SPLITS:
            for seed, level in enumerate(LEVELS * 2):
                count = 4 * MANY[family] if split == "train" else MANY[family]
                for key, question in drawn(family, count, level=level, split=split, seed=seed):
                    keys[split].add(key)
                    questions[split].add(question)
        assert len(keys["train"]) > 5 * MANY[family]
        assert not keys["train"] & keys["test"]
        assert not questions["train"] & questions["test"]

    def test_a_word_problem_is_known_by_what_its_text_says(self):
        for key, question in drawn("words", 300, split="test"):
            name, thing, sums = key.split(" ", 2)
            assert name in question
            assert thing in question
            assert not re.findall(r"[A-Z][a-z]+", sums), "nobody is in the key who may not be in the text"

    @pytest.mark.parametrize("family", sorted(published.READERS))
    def test_no_problem_of_a_published_test_is_made(self, family):
        prints = published.fingerprints(family)
        assert prints
        for level in LEVELS:
            for split in SPLITS:
                for index in range(MANY[family]):
                    assert published.of(family, sample(family, index, level=level, split=split, seed=10)) not in prints

    def test_seeds_and_indices_give_different_problems(self):
        for family in FAMILIES:
            made = [sample(family, index, split="train", seed=seed).question for seed in range(3) for index in range(30)]
            assert len(set(made)) > 75

    @pytest.mark.parametrize(("arguments", "words"), [
        ({"family": "word"}, "unknown family 'word'; did you mean 'words'"),
        ({"level": "harder"}, "unknown level 'harder'; did you mean 'hard'"),
        ({"seed": -1}, "seed=-1 and index=0 must be whole numbers of at least 0"),
        ({"seed": 2**63}, "must be whole numbers"),
        ({"index": -1}, "index=-1 must be whole numbers"),
    ])  # fmt: skip
    def test_what_there_is_not(self, arguments, words):
        with pytest.raises(InputError, match=words):
            sample(**{"family": "words", "index": 0, **arguments})


class TestDrawing:
    """draw() as a rule of its own, with problems that are only numbers."""

    @staticmethod
    def make(rng):
        key = str(rng.randrange(10**6))
        return None if key.endswith("7") else (key, Problem(key, key))

    @given(index=st.integers(0, 10**6), seed=st.integers(0, 2**63 - 1), split=st.sampled_from(SPLITS))
    def test_the_fingerprint_says_the_split(self, index, seed, split):
        problem = draw("numbers", self.make, index=index, seed=seed, split=split)
        assert (fingerprint(f"numbers:{problem.question}") % BUCKETS < TEST_BUCKETS) == (split == "test")
        assert problem == draw("numbers", self.make, index=index, seed=seed, split=split)
        assert not problem.question.endswith("7")

    @settings(max_examples=30)
    @given(seed=st.integers(0, 1000), split=st.sampled_from(SPLITS))
    def test_a_published_problem_is_drawn_again(self, seed, split):
        first = draw("numbers", self.make, index=0, seed=seed, split=split)
        print_ = fingerprint(f"numbers:{first.question}")
        again = draw("numbers", self.make, index=0, seed=seed, split=split, published=frozenset({print_}))
        assert again != first

    def test_one_problem_in_eight_is_a_test_problem(self):
        counts = Counter(fingerprint(f"numbers:{key}") % BUCKETS < TEST_BUCKETS for key in range(8000))
        assert abs(counts[True] - 8000 * TEST_BUCKETS / BUCKETS) < 4 * (8000 * 1 / 8 * 7 / 8) ** 0.5


class TestSudoku:
    @pytest.mark.parametrize("level", LEVELS)
    def test_one_solution_and_as_many_blanks_as_the_level_says(self, level):
        least, most = sudoku.LEVELS[level].blanks
        seen = Counter()
        for index in range(120):
            problem = sample("sudoku", index, level=level, seed=11)
            puzzle = problem.facts["puzzle"]
            assert sudoku.solutions(puzzle) == [problem.answer]
            assert least <= puzzle.count("0") <= most
            assert puzzle in problem.question
            seen[puzzle.count("0")] += 1
        assert len(seen) > 1

    def test_a_grid_is_valid_if_rows_columns_and_boxes_are(self):
        for grid in sudoku.grids():
            rows = [grid[start : start + 4] for start in range(0, 16, 4)]
            boxes = [rows[r][c : c + 2] + rows[r + 1][c : c + 2] for r in (0, 2) for c in (0, 2)]
            for group in (*rows, *("".join(column) for column in zip(*rows, strict=True)), *boxes):
                assert sorted(group) == list("1234")
        assert len(set(sudoku.grids())) == 288

    @given(grid=st.sampled_from(sudoku.grids()), blanks=st.sets(st.integers(0, 15)))
    def test_the_solutions_of_a_puzzle_are_the_grids_that_have_its_clues(self, grid, blanks):
        puzzle = "".join("0" if place in blanks else digit for place, digit in enumerate(grid))
        found = sudoku.solutions(puzzle)
        assert grid in found
        assert all(other[place] == puzzle[place] for other in found for place in range(16) if place not in blanks)


class TestCountdown:
    @pytest.mark.parametrize("level", LEVELS)
    def test_the_solution_uses_each_number_once_and_stays_whole_and_positive(self, level):
        for index in range(40):
            problem = sample("countdown", index, level=level, split="train", seed=12)
            value, used = rational.value(problem.answer)
            numbers, target = problem.facts["numbers"], problem.facts["target"]
            assert (value, sorted(used)) == (target, sorted(numbers))
            assert target not in numbers
            assert max(numbers) <= countdown.LEVELS[level].largest
            assert 1 <= target <= countdown.LEVELS[level].target
            assert set(re.findall(r"[+\-*/]", problem.answer)) <= set(countdown.LEVELS[level].signs)
            assert problem.question == f"Numbers: {list(numbers)}\nTarget: {target}"

    @settings(max_examples=60, deadline=None)
    @given(numbers=st.lists(st.integers(1, 30), min_size=3, max_size=3))
    def test_everything_that_can_be_made_has_its_value(self, numbers):
        for value, found in countdown.solutions(numbers, "+-*/", "+-*/"):
            assert rational.value(found.expression) == (value, rational.value(found.expression)[1])
            assert sorted(rational.value(found.expression)[1]) == sorted(numbers)
            for line in found.sums:
                left, _, right = line.partition(" = ")
                assert rational.value(left)[0] == int(right) >= 0

    @settings(max_examples=60, deadline=None)
    @given(numbers=st.lists(st.integers(1, 20), min_size=3, max_size=3), target=st.integers(1, 60))
    def test_attempts_end_in_the_target(self, numbers, target):
        if countdown.solve(numbers, target) is not None:
            *before, last = countdown.attempts(numbers, target)
            assert last == (target, countdown.solve(numbers, target).expression)
            assert all(value != target and rational.value(text)[0] == value for value, text in before)
            assert len({value for value, _ in before}) == len(before)


@pytest.fixture
def written(tmp_path):
    """A file that holds this."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return path

    return write


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows)


GOOD = {
    "gsm8k": {"question": "2+2?", "answer": "2+2 = 4\n#### 4"},
    "math500": {"problem": "2+2?", "answer": "4", "level": 1},
    "countdown": {"input": "3,5,1", "output": "12"},
    "words": {"question": "2+2?", "answer": "4"},
}
GRID, PUZZLE = "1234341221434321", "0034341221434321"


class TestFiles:
    def test_rows_as_published(self, written):
        assert find_task("gsm8k").published(written("a.jsonl", lines(GOOD["gsm8k"]) + "\n\n")) == [Problem("2+2?", "4")]
        assert find_task("math500").published(written("b.jsonl", lines(GOOD["math500"]))) == [Problem("2+2?", "4")]
        facts = {"numbers": (3, 5, 1), "target": 12}
        question = "Numbers: [3, 5, 1]\nTarget: 12"
        for row in (GOOD["countdown"], {"nums": [3, 5, 1], "target": 12}):
            assert find_task("countdown").published(written("c.jsonl", lines(row))) == [Problem(question, "(5 - 1) * 3", facts)]
        row = {"nums": [3, 5, 1], "target": 12, "solution": "3*(5-1)"}
        assert find_task("countdown").published(written("c.jsonl", lines(row))) == [Problem(question, "3*(5-1)", facts)]
        expected = [Problem(sudoku.question(PUZZLE), GRID, {"puzzle": PUZZLE}, boxed=False)]
        assert find_task("sudoku").published(written("d.csv", f"Puzzle,Solution\r\n{PUZZLE},{GRID}\r\n")) == expected
        assert find_task("sudoku").published(written("d.jsonl", lines({"Puzzle": PUZZLE, "Solution": GRID}))) == expected
        assert find_task("words").published(written("e.jsonl", lines(GOOD["words"]))) == [Problem("2+2?", "4")]

    def test_thousands_separators_in_the_reference_are_not_part_of_it(self, written):
        path = written("a.jsonl", lines({"question": "?", "answer": "#### 1,234"}))
        assert find_task("gsm8k").published(path)[0].answer == "1234"

    def test_line_ends_of_other_kinds_belong_to_the_text(self, written):
        row = {"question": "one\u2028two\x85three\x0cfour", "answer": "#### 4"}
        path = written("a.jsonl", json.dumps(row, ensure_ascii=False))
        assert find_task("gsm8k").published(path)[0].question == row["question"]

    @pytest.mark.parametrize(("task", "bad", "words"), [
        ("gsm8k", {"question": "?"}, "KeyError"),
        ("gsm8k", {"question": "?", "answer": "#### many"}, "could not convert"),
        ("gsm8k", {"question": "?", "answer": "#### nan"}, "nan is no number"),
        ("gsm8k", {"question": "?", "answer": 4}, "AttributeError"),
        ("gsm8k", {"question": None, "answer": "#### 4"}, "None is no text"),
        ("gsm8k", ["?", "4"], "is no object"),
        ("math500", {"problem": "?", "answer": None}, "None is no text"),
        ("math500", {"problem": ["?"], "answer": "4"}, "is no text"),
        ("countdown", {"input": "3,5,x", "output": "12"}, "invalid literal"),
        ("countdown", {"input": "3,5,1"}, "KeyError"),
        ("countdown", {"nums": "351", "target": 12}, "must be whole numbers"),
        ("countdown", {"nums": [3, 5, 1.5], "target": 12}, "must be whole numbers"),
        ("countdown", {"nums": [3, 5, True], "target": 12}, "must be whole numbers"),
        ("countdown", {"nums": [], "target": 12}, "must be whole numbers"),
        ("countdown", {"question": "?", "answer": "1", "facts": {}}, "KeyError"),
        ("sudoku", {"Puzzle": PUZZLE, "Solution": GRID[:-1]}, "does not solve"),
        ("sudoku", {"Puzzle": PUZZLE[:-1], "Solution": GRID}, "does not solve"),
        ("sudoku", {"Puzzle": PUZZLE, "Solution": "1234432121433412"}, "does not solve"),
        ("sudoku", {"Puzzle": PUZZLE.replace("4", "5"), "Solution": GRID}, "does not solve"),
        ("sudoku", {"question": "?", "answer": "1", "facts": {"puzzle": 1}}, "TypeError"),
        ("words", {"question": "?"}, "KeyError"),
        ("words", 5, "5 is no object"),
    ])  # fmt: skip
    def test_a_row_that_is_not_as_published_is_refused_by_its_number(self, written, task, bad, words):
        good = GOOD.get(task, {"Puzzle": PUZZLE, "Solution": GRID})
        path = written("rows.jsonl", lines(good, good, bad))
        with pytest.raises(InputError, match=rf"rows.jsonl row 3 is not as expected \(.*{words}.*\); it needs") as caught:
            find_task(task).published(path)
        assert "\n" not in str(caught.value)
        with pytest.raises(InputError, match="the data set row 2"):
            find_task(task).read([good, bad] if isinstance(bad, dict) else [good, {"x": bad}])

    @pytest.mark.parametrize(("name", "content", "words"), [
        ("a.jsonl", "", "has no rows; it needs"),
        ("a.csv", "", "has no rows"),
        ("a.csv", "Puzzle,Solution\n", "has no rows"),
        ("a.csv", f"puzzle,solution\n{PUZZLE},{GRID}\n", "row 1 is not as expected"),
        ("a.csv", f"Puzzle,Solution\n{PUZZLE}\n", "row 1 is not as expected"),
        ("a.csv", "Puzzle,Solution\n" + "1" * 200_000 + ",2\n", "is not a CSV file"),
        ("a.jsonl", "{", "a.jsonl line 1 is not JSON"),
        ("a.jsonl", lines({}) + "\n\nx", "a.jsonl line 3 is not JSON"),
        ("a.jsonl", "[" * 100_000, "line 1 is not JSON"),
        ("a.jsonl", b"\xff\xfe", "is not UTF-8 text"),
    ])  # fmt: skip
    def test_files_that_cannot_be_read(self, written, name, content, words):
        with pytest.raises(InputError, match=words) as caught:
            find_task("sudoku").published(written(name, content))
        assert "\n" not in str(caught.value)

    def test_files_that_are_not_there(self, tmp_path):
        with pytest.raises(InputError, match=r"x.jsonl cannot be read: No such file"):
            find_task("gsm8k").published(tmp_path / "x.jsonl")
        with pytest.raises(InputError, match="cannot be read: Is a directory"):
            find_task("gsm8k").published(tmp_path)

    def test_a_part_of_the_rows(self, written):
        path = written("a.jsonl", lines(*({"question": str(number), "answer": f"#### {number}"} for number in range(5))))
        task = find_task("gsm8k")
        assert [problem.answer for problem in task.problems(2, start=1, data=path)] == ["1", "2"]
        with pytest.raises(InputError, match=r"a.jsonl has 5 problems; n=3 from 3 on are too many"):
            task.problems(3, start=3, data=path)
        with pytest.raises(InputError, match="n=0 must be at least 1"):
            task.problems(0)

    def test_where_there_is_nothing_to_take_problems_from(self, monkeypatch):
        with pytest.raises(
            InputError, match="task 'gsm8k' has no generator; give its published file with --data FILE, or --data hub"
        ):
            find_task("gsm8k").problems(1)
        with pytest.raises(InputError, match="task 'countdown' is on no hub; give its file"):
            find_task("countdown").problems(1, data="hub")
        monkeypatch.setitem(sys.modules, "datasets", None)
        with pytest.raises(InputError, match=r"pip install 'unmask\[hub\]'"):
            find_task("gsm8k").problems(1, data="hub")

    def test_the_hub(self, monkeypatch):
        class Library:
            def load_dataset(self, dataset, config, split):
                if dataset != "openai/gsm8k":
                    raise ConnectionError("offline\nand a long trace")
                assert (config, split) == ("main", "test")
                return iter([GOOD["gsm8k"]])

        monkeypatch.setitem(sys.modules, "datasets", Library())
        assert find_task("gsm8k").problems(1, data="hub") == [Problem("2+2?", "4")]
        with pytest.raises(InputError, match="'HuggingFaceH4/MATH-500' cannot be loaded: offline; give a local file"):
            find_task("math500").problems(1, data="hub")

    def test_what_we_write_we_read(self, written):
        for task in OURS:
            problems = task.problems(5, seed=1)
            rows = [
                {"question": problem.question, "answer": problem.answer, "facts": dict(problem.facts), "boxed": problem.boxed}
                for problem in problems
            ]
            for problem, again in zip(problems, task.published(written("a.jsonl", lines(*rows))), strict=True):
                assert (again.question, again.answer, again.facts, again.boxed) == (
                    problem.question,
                    problem.answer,
                    problem.facts,
                    problem.boxed,
                )
                assert task.score(again, problem.response()).solved


@pytest.fixture(scope="module")
def data():
    folder = Path(os.environ.get("UNMASK_DATA", "no such folder"))
    if not folder.is_dir():
        pytest.skip("UNMASK_DATA names no folder with the published data")
    return folder


@pytest.mark.shared
class TestPublished:
    @pytest.mark.parametrize(("task", "file", "rows"), [
        ("gsm8k", "gsm8k/test.jsonl", 1319),
        ("gsm8k", "gsm8k/train.jsonl", 7473),
        ("math500", "math/math500_test.jsonl", 500),
        ("countdown", "countdown/countdown_cd3_test.jsonl", 256),
        ("countdown", "countdown/countdown_34_heldout.jsonl", 1024),
        ("sudoku", "sudoku/test_sudoku_split_new.csv", 256),
        ("sudoku", "sudoku/4x4_test_sudoku.csv", 500),
    ])  # fmt: skip
    def test_every_row_is_read_and_its_answer_is_right(self, data, task, file, rows):
        found = find_task(task)
        problems = found.published(data / file)
        assert len(problems) == rows
        for problem in problems:
            assert found.score(problem, problem.response("direct")).solved, problem
            assert found.score(problem, problem.response("direct"), "d1").solved, problem

    def test_the_stored_fingerprints_are_those_of_the_published_tests(self, data):
        of = published.of
        asked = {of("countdown", problem) for problem in sources.read_countdown(data / "countdown/countdown_cd3_test.jsonl")}
        assert published.fingerprints("countdown") == asked
        puzzles = {
            of("sudoku", problem)
            for file in ("4x4_test_sudoku.csv", "test_sudoku_split_new.csv")
            for problem in sources.read_sudoku(data / "sudoku" / file)
        }
        assert published.fingerprints("sudoku") == puzzles
        assert len(puzzles) == 500 + 256  # the two tests share no puzzle

    def test_the_fingerprints_can_be_written_anew(self, data, tmp_path, monkeypatch):
        monkeypatch.setattr(published, "__file__", str(tmp_path / "published.py"))
        published.main([f"countdown={data / 'countdown/countdown_cd3_test.jsonl'}",
            *(f"sudoku={data / 'sudoku' / name}" for name in ("4x4_test_sudoku.csv",
            "test_sudoku_split_new.csv"))])  # fmt: skip
        stored = json.loads((tmp_path / "published.json").read_text())
        assert {family: frozenset(prints) for family, prints in stored.items()} == {
            family: published.fingerprints(family) for family in published.READERS
        }

    def test_the_grids_are_all_grids(self, data):
        rows = (data / "sudoku/4x4_all_solutions.csv").read_text().split()[1:]
        assert sorted(row.split(",")[0] for row in rows) == sorted(sudoku.grids())

    def test_the_spg_test_has_as_many_empty_cells_as_published(self, data):
        problems = find_task("sudoku").published(data / "sudoku/test_sudoku_split_new.csv")
        blanks = Counter(problem.facts["puzzle"].count("0") for problem in problems)
        assert blanks == {7: 82, 8: 83, 9: 76, 11: 12, 12: 3}
        assert sum(find_task("sudoku").score(problem, "").of for problem in problems) == 2090


class TestPrompts:
    @pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
    def test_every_prompt_asks_and_begins_the_answer(self, task):
        prompt = task.prompt()
        asked, begun = prompt.prompt("What is {{ 6 * 7 }} & so on?")
        assert asked["role"] == "user"
        assert "What is {{ 6 * 7 }} & so on?" in asked["content"]  # the question is no template
        assert begun == {"role": "assistant", "content": "<reasoning>"}
        assert prompt.prompt("What?", chat=False) == prompt.prompt("What?")[0]["content"] + "\n<reasoning>"
        for part in ("<answer>", "</answer>", "<reasoning>", "</reasoning>"):
            assert part in asked["content"]

    def test_the_worked_examples_are_right(self):
        asked = find_task("countdown").prompt().prompt("?", chat=False)
        problem = Problem("", "", {"numbers": (37, 89, 41), "target": 11})
        assert countdown.question(**problem.facts) in asked
        example = asked[asked.index("Question: Numbers") : asked.rindex("Question:")]
        assert find_task("countdown").score(problem, example).solved
        assert find_task("countdown").score(problem, example, "d1").solved
        asked = find_task("sudoku").prompt().prompt("?", chat=False)
        puzzle = "3014002020004130"
        assert sudoku.question(puzzle).strip() in asked
        example = asked[asked.index("Question: Solve") : asked.rindex("Question:")]
        assert find_task("sudoku").score(Problem("", sudoku.solutions(puzzle)[0], {"puzzle": puzzle}), example).solved

    def test_the_bare_prompt_is_the_question(self):
        assert load_prompt("bare").prompt("2+2?") == [
            {"role": "user", "content": "2+2?"},
            {"role": "assistant", "content": "<reasoning>"},
        ]

    def test_a_file_of_ones_own(self, written):
        path = written("own.toml", 'version = 3\nuser = """\nQ: {{ question | upper }}\nA:"""')
        prompt = find_task("gsm8k").prompt(path)
        assert prompt.version == 3
        assert prompt.prompt("two?") == [{"role": "user", "content": "Q: TWO?\nA:"}]
        assert prompt.prompt("two?", chat=False) == "Q: TWO?\nA:"
        path = written("begun.toml", 'version = 1\nuser = "{{ question }}"\nprefill = "So"')
        assert find_task("gsm8k").prompt(str(path)).prompt("two?", chat=False) == "two?\nSo"

    @pytest.mark.parametrize(("content", "words"), [
        ("version = 1", "must have version .* user"),
        ('user = "{{ question }}"', "must have version"),
        ('version = "1"\nuser = "{{ question }}"', "wrong: version"),
        ("version = 1\nuser = 5", "wrong: user"),
        ('version = 1\nuser = "{{ question }}"\nprefill = 5', "wrong: prefill"),
        ('version = 1\nuser = "{{ question }}"\nextra = 5\nmore = 6', "wrong: extra, more"),
        ('version = 1\nuser = "two?"', "must have {{ question }}"),
        ('version = 1\nuser = "the question"', "must have {{ question }}"),
        ('version = 1\nuser = "{# question #}"', "must have {{ question }}"),
        ("no toml", "is not a prompt file"),
        (b"\xff\xfe", "is not a prompt file"),
        ('version = 1\nuser = "{{ question"', "cannot be filled in: unexpected end of template"),
        ('version = 1\nuser = "{% question %}"', "cannot be filled in: Encountered unknown tag"),
        ('version = 1\nuser = "{{ question }}{{ 1 / 0 }}"', "cannot be filled in: division by zero"),
        ('version = 1\nuser = "{{ question + 5 }}"', "cannot be filled in: can only concatenate"),
        ('version = 1\nuser = "{{ question.__class__.__mro__ }}"', "cannot be filled in: access to attribute '__class__'"),
        ('version = 1\nuser = "{% for i in range(10**9) %}x{% endfor %}{{ question }}"', "cannot be filled in: Range too big"),
    ])  # fmt: skip
    def test_a_bad_file_is_refused_by_name(self, written, content, words):
        with pytest.raises(InputError, match=rf"bad.toml.*{words}") as caught:
            find_task("gsm8k").prompt(written("bad.toml", content))
        assert "\n" not in str(caught.value)

    def test_a_name_that_is_none(self, tmp_path):
        with pytest.raises(InputError, match="unknown prompt 'gsm'; did you mean 'gsm8k'"):
            load_prompt("gsm")
        with pytest.raises(InputError, match="unknown prompt '../published'"):
            load_prompt("../published")
        with pytest.raises(InputError, match=r"none.toml cannot be read: No such file"):
            load_prompt(str(tmp_path / "none.toml"))


RIGHT = r"</reasoning><answer>\boxed{4}</answer><|eot_id|>"
D1 = {
    "gsm8k": ({"question": "2+2?", "ground_truth": 4.0}, RIGHT),
    "math500": ({"question": "2+2?", "ground_truth": "4"}, RIGHT),
    "countdown": ({"question": "Numbers: [3, 5, 1]\nTarget: 12", "ground_truth": [[3, 5, 1], 12]}, r"\boxed{3 * (5 - 1)}"),
    "sudoku": (
        {"question": f"Solve the following Sudoku puzzle: {PUZZLE}\n", "ground_truth": GRID},
        f"<answer>\n{GRID}\n</answer>",
    ),
}


class TestCompletions:
    @pytest.mark.parametrize("task", D1)
    def test_d1s_files(self, written, task):
        row, completion = D1[task]
        rows = [{**row, "prompt_input": "...", "generations": text} for text in (completion, "no answer")]
        path = written(
            "gen.json", json.dumps({"generations": rows, "metrics": {"wall_time": 1}, "checkpoint_path": ""}, indent=2)
        )
        found = read_completions(path, task)
        assert [text for _, text in found] == [completion, "no answer"]
        for scorer in SCORERS:
            assert [find_task(task).score(problem, text, scorer).solved for problem, text in found] == [True, False]

    def test_d1s_puzzles_and_numbers_can_stand_in_the_question_alone(self, written):
        row = {"question": f"{PUZZLE} and more", "ground_truth": GRID, "generations": ""}
        [(problem, _)] = read_completions(written("a.json", json.dumps({"generations": [row]})), "sudoku")
        assert problem.facts == {"puzzle": PUZZLE}
        row = {"question": "Numbers: [3, 5, 1]\nTarget: 12", "ground_truth": "", "generations": ""}
        [(problem, _)] = read_completions(written("a.json", json.dumps({"generations": [row]})), "countdown")
        assert problem.facts == {"numbers": (3, 5, 1), "target": 12}

    @pytest.mark.parametrize("task", OURS, ids=lambda task: task.name)
    def test_our_json_lines(self, written, task):
        problems = task.problems(4, level="hard", seed=3)
        rows = [
            {"question": problem.question, "answer": problem.answer, "facts": dict(problem.facts),
            "completion": problem.response() + "\u2028 é \x85"}
            for problem in problems
        ]  # fmt: skip
        for text in (lines(*rows), lines(*rows) + "\n\n", "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)):
            found = read_completions(written("a.jsonl", text), task.name)
            assert [completion for _, completion in found] == [row["completion"] for row in rows]
            for scorer in SCORERS:
                assert all(task.score(problem, completion, scorer).solved for problem, completion in found)

    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize(("content", "words"), [
        ("", "holds no completions"),
        ('{"generations": []}', "holds no completions"),
        ("[1]", "must hold objects"),
        ("5", "must hold objects"),
        ('{"generations": 5}', "must hold objects"),
        ('{"generations": [5]}', "must hold objects"),
        ("{", "line 1 is not JSON"),
        ("[" * 100_000, "line 1 is not JSON"),
        (b"\xff", "is not UTF-8 text"),
        ("{}", "row 1 is not a completion of task"),
        (lines({"question": "?", "answer": "4"}), "row 1 is not a completion"),
        (lines({"question": "?", "answer": "4", "completion": 4, "facts": {"puzzle": PUZZLE}}), "row 1 is not a completion"),
        (lines({"question": "?", "answer": None, "completion": ""}), "row 1 is not a completion"),
        (json.dumps({"generations": [{"question": "?", "ground_truth": [5], "generations": ""}]}), "row 1 is not a completion"),
        (json.dumps({"generations": [{"question": "?", "ground_truth": None, "generations": ""}]}),
        "row 1 is not a completion"),
        (json.dumps({"generations": [{"question": "?", "ground_truth": "4"}]}), "row 1 is not a completion"),
    ])  # fmt: skip
    def test_bad_files_are_one_line(self, written, task, content, words):
        with pytest.raises(InputError, match=words) as caught:
            read_completions(written("a.json", content), task)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(("task", "row"), [
        ("gsm8k", {"question": "?", "answer": "many", "completion": ""}),
        ("words", {"question": "?", "answer": "nan", "completion": ""}),
        ("countdown", {"question": "?", "answer": "", "completion": ""}),
        ("countdown", {"question": "?", "answer": "", "completion": "", "facts": {"numbers": "351", "target": 12}}),
        ("countdown", {"question": "?", "answer": "", "completion": "", "facts": {"numbers": [3, 5, 1]}}),
        ("countdown", {"question": "Numbers: []", "ground_truth": [[3, "x"], 1], "generations": ""}),
        ("sudoku", {"question": "?", "answer": GRID, "completion": ""}),
        ("sudoku", {"question": "?", "answer": GRID, "completion": "", "facts": {"puzzle": PUZZLE[:-1]}}),
        ("sudoku", {"question": PUZZLE, "ground_truth": GRID[::-1] + "1", "generations": ""}),
        ("sudoku", {"question": "no puzzle", "ground_truth": GRID, "generations": ""}),
    ])  # fmt: skip
    def test_a_problem_that_no_scorer_can_use_is_refused_by_its_row(self, written, task, row):
        with pytest.raises(InputError, match=rf"a.jsonl row 1 is not a completion of task '{task}' \("):
            read_completions(written("a.jsonl", lines(row)), task)

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(InputError, match=r"x.json cannot be read: No such file"):
            read_completions(tmp_path / "x.json", "gsm8k")


def test_a_score_lies_between_nothing_and_one():
    assert [Score(0, 4).value, Score(3, 4).value, Score(4, 4).value, Score(0, 0).value] == [0.0, 0.75, 1.0, 0.0]


def test_names_that_are_none():
    with pytest.raises(InputError, match="unknown task 'gsm'; did you mean 'gsm8k'"):
        find_task("gsm")
    with pytest.raises(InputError, match="unknown scorer 'strickt'; did you mean 'strict'"):
        find_task("gsm8k").score(Problem("", "4"), "", "strickt")
    with pytest.raises(InputError, match="unknown style 'short'"):
        Problem("", "4").response("short")
