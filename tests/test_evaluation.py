"""Evaluation: every answer scored and kept, intervals by formula, runs that go on."""

import json
import math
from itertools import combinations

import numpy as np
import pytest

import unmask
from unmask.errors import InputError
from unmask.evaluation import Outcome, Plan, early, evaluate, grid, interval, pass_at, report
from unmask.tasks.task import find_task

SETTINGS = {"length": 16, "steps": 4, "order": "top1", "eos": "none", "schedule": "linear"}


def outcome(problem, sample=0, right=0, of=1):
    return Outcome(problem, sample, right, of, right == of, 1, 1, 0.0, 0.0, 0.0, "")


def plan(n=5, **changes):
    task = find_task("words")
    values = {"task": task, "problems": task.problems(n), "settings": SETTINGS, "source": "here"}
    return Plan(**{**values, **changes})


@pytest.fixture(scope="module")
def model():
    return unmask.load("toy")


@pytest.mark.parametrize(("right", "n"), [(0, 10), (3, 10), (10, 10), (217, 256)])
def test_the_interval_of_single_answers_is_wilsons(right, n):
    share, low, high = interval([outcome(index, right=int(index < right)) for index in range(n)])
    z, p = 1.959963984540054, right / n
    middle, spread = (
        (p + z * z / (2 * n)) / (1 + z * z / n),
        z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)),
    )
    assert (share, low, high) == pytest.approx((p, max(0, middle - spread), min(1, middle + spread)))


def test_cells_are_counted_over_all_puzzles_and_their_interval_holds_the_truth():
    generator = np.random.default_rng(1)
    held = 0
    for _ in range(60):
        of = generator.integers(4, 9, 80)
        outcomes = [outcome(index, right=int(generator.binomial(cells, 0.7)), of=int(cells)) for index, cells in enumerate(of)]
        share, low, high = interval(outcomes)
        assert share == sum(each.right for each in outcomes) / sum(of)
        held += low <= 0.7 <= high
    assert held >= 50  # 95% of 60 are 57; fewer than 50 happen once in 10^4


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_pass_at_k_is_the_chance_over_all_ways_to_choose_k_samples(k):
    solved = [[True, False, False, True], [False] * 4, [True] * 4, [False, False, True, False]]
    outcomes = [outcome(i, j, right=int(one)) for i, each in enumerate(solved) for j, one in enumerate(each)]
    expected = [np.mean([any(chosen) for chosen in combinations(each, k)]) for each in solved]
    assert pass_at(outcomes, k) == pytest.approx(np.mean(expected))


def test_problems_are_paired_by_seed_whatever_the_batch(model):
    sampled = {**SETTINGS, "temperature": 1.0}
    one, many = (list(evaluate(model, plan(settings=sampled, samples=2), batch=batch)) for batch in (1, 7))
    assert [each.text for each in one] == [each.text for each in many]
    assert len({each.text for each in one}) > 5
    assert [(each.problem, each.sample) for each in one] == [(problem, sample) for problem in range(5) for sample in range(2)]


def test_a_run_that_was_killed_goes_on_without_losing_or_repeating_a_row(model, tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    expected = list(evaluate(model, plan(), batch=2, file=whole))
    text = whole.read_text()
    for size in range(text.index("\n") + 1, len(text), 97):
        cut.write_text(text[:size])
        found = list(evaluate(model, plan(), batch=2, file=cut))
        assert [(each.problem, each.text) for each in found] == [(each.problem, each.text) for each in expected]
        rows = [json.loads(line) for line in cut.read_text().splitlines()[1:]]
        assert [row["problem"] for row in rows] == list(range(5))


def test_a_file_of_another_evaluation_is_refused_by_what_differs(model, tmp_path):
    file = tmp_path / "rows.jsonl"
    list(evaluate(model, plan(), file=file))
    with pytest.raises(InputError, match="was made with seed=0, not 1"):
        list(evaluate(model, plan(seed=1), file=file))
    with pytest.raises(InputError, match="settings="):
        list(evaluate(model, plan(settings={**SETTINGS, "steps": 8}), file=file))
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[2], lines[1]]))
    with pytest.raises(InputError, match="are not the first ones"):
        list(evaluate(model, plan(), file=file))
    file.write_text(lines[0] + "{}\n")
    with pytest.raises(InputError, match="is damaged"):
        list(evaluate(model, plan(), file=file))


def test_a_report_says_what_it_came_from(model):
    line = report(model, plan(samples=2), list(evaluate(model, plan(samples=2))))
    wanted = {"model", "task", "rule", "eos", "schedule", "planner", "steps", "blocks", "n", "accuracy", "low", "high",
              "effective_tokens", "nfe", "seconds", "seed", "dtype", "device", "versions", "commit", "scorer", "task_version",
              "fingerprint", "pass_at"}  # fmt: skip
    assert wanted <= line.keys()
    assert (line["task"], line["n"], line["steps"], line["nfe"], line["seed"]) == ("words", 5, 4, 4, 0)
    json.dumps(line)


def test_other_weights_have_another_fingerprint(checkpoint, tmp_path):
    from conftest import SPECIALS, write_checkpoint
    from unmask import Model, load_backbone
    from unmask.text import toy_text

    def fingerprint(folder):
        backbone = load_backbone(folder, specials=SPECIALS, tokens=195)
        return Model("m", backbone, toy_text(), backbone.dtype).fingerprint

    assert fingerprint(write_checkpoint(tmp_path / "a", "llada")) == fingerprint(write_checkpoint(tmp_path / "b", "llada"))
    assert fingerprint(write_checkpoint(tmp_path / "c", "llada", seed=1)) != fingerprint(tmp_path / "a")


def test_early_reveals_of_the_toy_by_confidence_alone_are_end_tokens_at_the_end(model):
    answer = model.generate("Tell me.", length=128, steps=128, order="top1", eos="none", schedule="linear")
    ends, place = early(answer)
    columns = answer.record.columns
    first = columns["step"] <= 32  # one token a step
    assert ends == np.isin(columns["token"][first], model.backbone.end_ids).mean()
    assert place == pytest.approx(columns["slot"][first].mean() / 127)
    assert ends > 0.5
    assert place > 0.5


def test_a_model_without_a_chat_template_is_asked_in_plain_text(model):
    task = find_task("words")
    asked = task.prompt("bare")
    assert asked.prompt("What?", chat=False) == "What?\n<reasoning>"
    assert asked.prompt("What?") == [{"role": "user", "content": "What?"}, {"role": "assistant", "content": "<reasoning>"}]


def test_a_grid_is_every_combination():
    assert grid({"a": [1, 2], "b": [None, 3]}) == [{"a": 1}, {"a": 1, "b": 3}, {"a": 2}, {"a": 2, "b": 3}]
