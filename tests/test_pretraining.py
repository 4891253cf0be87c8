"""Pretraining: recipes, canvases, objectives, and runs that go on where they were killed."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

import unmask
from unmask.errors import InputError
from unmask.pretraining.examples import Batch, Examples
from unmask.pretraining.objective import BLOCK, losses, make_lesson
from unmask.pretraining.recipe import OBJECTIVES, find_recipe, parse_recipe, read_recipe
from unmask.pretraining.train import Training
from unmask.pretraining.vocabulary import FILL, learn
from unmask.tasks.families import FAMILIES, sample
from unmask.text import Text

RECIPE = """
name = "test"
seed = 3
level = "easy"
save_every = 5
evaluate_every = 1000000
[shape]
hidden_size = 32
layers = 2
heads = 2
kv_heads = 2
mlp_size = 48
vocab_size = 400
context = 256
window = 128
[[phase]]
name = "read"
steps = 12
tokens = 512
rate = [0.003, 0.001]
objectives = { causal = 1 }
styles = { worked = 1, direct = 0.5 }
tasks = { algebra = 1, countdown = 1 }
[[phase]]
name = "fill"
steps = 11
tokens = 512
rate = 0.001
filled = true
opened = 0.5
objectives = { causal = [0.5, 0.0], block = 0.5, uniform = [0.0, 0.5] }
styles = { long = 1, terse = 1 }
tasks = { words = 1, sudoku = 1 }
"""
COMMAND = [sys.executable, "-c", "import unmask.cli; unmask.cli.main()", "pretrain"]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "test.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def finished(recipe, tmp_path_factory):
    """A run that was never interrupted."""
    training = Training(read_recipe(recipe), tmp_path_factory.mktemp("finished"))
    training.scores = dict  # solving problems takes longer than all steps
    reports = list(training)
    return training, reports


def losses_of(folder):
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [(line["step"], line["loss"]) for line in lines if not line["scores"]]


def test_a_run_killed_at_any_moment_ends_like_one_that_was_not(recipe, finished, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    until = ["--until", "22"]  # the 23rd step would end with an evaluation
    whole = tmp_path / "whole"
    subprocess.run([*COMMAND, str(recipe), "--out", str(whole), *until], env=environment, check=True, capture_output=True)
    killed = tmp_path / "killed"
    for moment in (1, 2):  # killed once there is a first saved state, and again after going on
        process = subprocess.Popen(
            [*COMMAND, str(recipe), "--out", str(killed), *until], env=environment, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and not (killed / "log.jsonl").is_file():
            time.sleep(0.01)
        time.sleep(0.1 * moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(
        [*COMMAND, str(recipe), "--out", str(killed), *until], env=environment, check=True, capture_output=True
    )
    assert b"is at step 22 of 23" in done.stdout
    assert losses_of(killed) == losses_of(whole)
    assert [step for step, _ in losses_of(whole)] == [10, 20, 22]
    for name in ("training.safetensors", "model-00001-of-00001.safetensors"):
        first, second = load_file(whole / name), load_file(killed / name)
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key], second[key]) for key in first)


def test_a_run_goes_on_from_its_last_saved_step(recipe, finished, tmp_path):
    training = Training(read_recipe(recipe), tmp_path)
    assert [report.step for report in training.reports(until=13)] == [10, 13]
    again = Training(read_recipe(recipe), tmp_path)
    again.scores = dict
    assert again.step == 13
    assert [report.step for report in again.reports() if report.scores is None] == [20, 23]
    weights = dict(finished[0].model.named_parameters())
    assert all(torch.equal(parameter, weights[name]) for name, parameter in again.model.named_parameters())


def test_ten_steps_teach_something(finished):
    training, reports = finished
    assert reports[0].step == 10
    assert reports[0].loss < math.log(training.text.size)  # what guessing costs


def test_what_was_trained_loads_like_any_checkpoint(finished):
    model = unmask.load(str(finished[0].folder), dtype="float32")
    answer = model.generate("What is 3x + 2 for x = 4?", length=16, steps=4)
    assert len(answer.tokens) == 16
    assert model.taught == {"prompt": "bare", "level": "easy"}


def test_a_folder_with_another_recipe_is_refused(recipe, finished, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(RECIPE.replace("seed = 3", "seed = 4"))
    with pytest.raises(InputError, match="holds step 23 of another recipe"):
        Training(read_recipe(other), finished[0].folder)


def test_phases_that_have_not_begun_may_change(recipe, tmp_path):
    list(Training(read_recipe(recipe), tmp_path).reports(until=5))
    later = tmp_path / "later.toml"
    later.write_text(RECIPE.replace("steps = 11", "steps = 9"))
    assert Training(read_recipe(later), tmp_path).step == 5
    begun = tmp_path / "begun.toml"
    begun.write_text(RECIPE.replace("steps = 12", "steps = 13"))
    with pytest.raises(InputError, match="another recipe"):
        Training(read_recipe(begun), tmp_path)


def test_a_damaged_state_is_refused_by_its_name(recipe, tmp_path):
    list(Training(read_recipe(recipe), tmp_path).reports(until=5))
    state = tmp_path / "training.safetensors"
    state.write_bytes(state.read_bytes()[:1000])
    with pytest.raises(InputError, match=r"training\.safetensors is damaged"):
        Training(read_recipe(recipe), tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seed = 3", "sede = 3"), "did you mean 'seed'"),
        (("seed = 3", "seed = 'x'"), "seed='x' must be of type int"),
        (('level = "easy"', 'level = "eazy"'), "did you mean 'easy'"),
        (("causal = 1", "casual = 1"), "did you mean 'causal'"),
        (("worked = 1", "wordy = 1"), "unknown style"),
        (("algebra = 1", "algebar = 1"), "did you mean 'algebra'"),
        (("rate = 0.001", "rate = [1, 2, 3]"), "rate=[1, 2, 3] must be a number"),
        (("opened = 0.5", "opened = 1.5"), "opened=1.5 must lie between 0 and 1"),
        (("steps = 12", "steps = 0"), "steps=0 must be at least 1"),
        (('name = "fill"', 'name = "read"'), "two phases have the same name"),
        (("hidden_size = 32", ""), "'hidden_size' missing"),
        (("causal = 1 }", "causal = -1 }"), "must be a number >= 0"),
        (("[[phase]]", "[[phase"), "is not valid TOML"),
    ],
)
def test_a_wrong_recipe_is_refused_by_name(tmp_path, change, message):
    path = tmp_path / "wrong.toml"
    path.write_text(RECIPE.replace(*change, 1))
    with pytest.raises(InputError) as error:
        read_recipe(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_recipe_of_the_shipped_model_is_in_the_package():
    assert find_recipe("tiny").shape.window == 128
    with pytest.raises(InputError, match="did you mean 'tiny'"):
        find_recipe("tinny")
    with pytest.raises(InputError, match="at least one"):
        parse_recipe({"name": "x"})


def test_batches_are_a_function_of_recipe_and_step(recipe, finished):
    text = finished[0].text
    first, second = (Examples(read_recipe(recipe), text, text.specials[FILL]) for _ in range(2))
    for step in (0, 15, 3):
        second.batch(step + 1)
        assert torch.equal(first.batch(step).tokens, second.batch(step).tokens)


def test_a_canvas_is_a_prompt_an_answer_and_end_tokens(recipe, finished):
    text, fill = finished[0].text, finished[0].text.specials[FILL]
    examples = Examples(read_recipe(recipe), text, fill)
    for step, window in ((0, None), (14, 128)):
        batch = examples.batch(step)
        for row in range(len(batch.tokens)):
            start, end, length = int(batch.start[row]), int(batch.end[row]), int(batch.length[row])
            assert fill not in batch.tokens[row, :end].tolist()
            assert set(batch.tokens[row, end:].tolist()) <= {fill}
            assert length - start == window if window else length == end + 1
            before, answer = (
                text.decode(batch.tokens[row, part].tolist(), keep_special=True) for part in (slice(start), slice(start, end))
            )
            assert answer.endswith("</answer>")
            assert before.endswith("<|assistant|><reasoning>") != answer.startswith("<reasoning>")


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(OBJECTIVES))
def test_objectives_hide_and_ask_what_they_say(seed, objective):
    generator = torch.Generator().manual_seed(seed)
    rows, width, mask = 3, 80, 99
    start = torch.randint(1, 20, (rows,), generator=generator)
    end = start + torch.randint(0, 30, (rows,), generator=generator)
    length = end + 1 + torch.randint(0, 25, (rows,), generator=generator)
    tokens = torch.randint(0, 90, (rows, width), generator=generator)
    lesson = make_lesson(Batch(tokens, start, end, length), {objective: 1.0}, mask_id=mask, generator=generator)
    place, asked, hidden = torch.arange(width), lesson.weight > 0, lesson.inputs == mask
    for row in range(rows):
        slots = (place >= start[row]) & (place < length[row])
        assert torch.equal(lesson.inputs[row][~slots], tokens[row][~slots])
        assert asked[row].any()
        assert not asked[row][~slots].any()
        assert float(lesson.weight[row].sum()) == pytest.approx(1.0, abs=1e-5)
        sees = lesson.sees[row, 0]
        if objective == "causal":
            assert not hidden[row].any()
            assert torch.equal(asked[row], (place >= start[row]) & (place <= end[row]))
            assert torch.equal(sees, (place[:, None] >= place) & (place < length[row]))
            continue
        assert torch.equal(sees, (place < length[row]).expand(width, -1))
        assert not (asked[row] & ~hidden[row]).any()
        if objective == "uniform":
            assert torch.equal(asked[row], hidden[row])
        else:
            first, last = int(place[asked[row]][0]), int(place[asked[row]][-1])
            assert last - first < BLOCK
            known_after = slots & ~hidden[row] & (place > last)
            assert not known_after[first + BLOCK :].any()
    assert torch.equal(lesson.targets, tokens)


def test_short_answers_can_be_kept_to_uniform_masks():
    start, end = torch.tensor([2, 2]), torch.tensor([10, 50])
    batch = Batch(torch.zeros(2, 60, dtype=torch.int64), start, end, end + 1)
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        lesson = make_lesson(batch, {"block": 1.0}, mask_id=9, generator=generator, ordered_from=30)
        assert lesson.kind.tolist() == [OBJECTIVES.index("uniform"), OBJECTIVES.index("block")]


def test_the_loss_is_the_mean_of_what_is_asked_with_predictions_shifted_by_one():
    torch.manual_seed(0)
    tokens = torch.tensor([[5, 6, 7, 8, 9]])
    batch = Batch(tokens, torch.tensor([2]), torch.tensor([3]), torch.tensor([4]))
    lesson = make_lesson(batch, {"causal": 1.0}, mask_id=1, generator=torch.Generator())
    logits = torch.randn(1, 4, 12)
    expected = -(logits[0, 1].log_softmax(-1)[7] + logits[0, 2].log_softmax(-1)[8]) / 2
    assert float(losses(logits, lesson)[0]) == pytest.approx(float(expected), rel=1e-6)


@settings(deadline=None, max_examples=50)
@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_the_tokenizer_keeps_digits_apart_and_loses_nothing(words):
    tokenizer = learned()
    assert tokenizer.decode(tokenizer.encode(words).ids, skip_special_tokens=False) == words
    for number in ("7", "40", "1234"):
        text = f"She has {number} eggs, x={number}."
        pieces = [tokenizer.id_to_token(index) for index in tokenizer.encode(text).ids]
        assert sum(piece.isdigit() for piece in pieces) == 2 * len(number)
        assert all(len(piece) == 1 for piece in pieces if any(character.isdigit() for character in piece))


def learned(cache=[]):  # noqa: B006
    if not cache:
        cache.append(learn([sample(name, index).response() for name in FAMILIES for index in range(50)], size=400))
    return cache[0]


def test_a_text_of_this_tokenizer_is_written_like_a_published_one(finished):
    text = Text.load(finished[0].folder)
    chat = text.chat([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "<reasoning>"}])
    assert chat == "<|user|>Hi<|assistant|><reasoning>"
    assert FILL in text.specials
    assert text.decode(text.encode(chat)) == "Hi<reasoning>"  # the marks are ordinary text
