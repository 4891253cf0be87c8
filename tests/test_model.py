"""Text in, text out."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from conftest import write_checkpoint
from tokenizer_files import write_dream, write_llada
from unmask import InputError, MemoryLimitError, Record, load, progressive_counts, top_by
from unmask.model import Run


@pytest.fixture(scope="module", params=["llada", "dream"])
def folder(request, tmp_path_factory):
    """A whole checkpoint: weights, config, tokenizer and chat template."""
    folder = tmp_path_factory.mktemp(request.param)
    specials = (write_llada if request.param == "llada" else write_dream)(folder)
    mask = specials.get("<|mdm_mask|>", specials.get("<|mask|>"))
    changes = {"vocab_size": 280, "mask_token_id": mask, "eos_token_id": specials["<|endoftext|>"]}
    if request.param == "llada":
        changes["embedding_size"] = 280
    return write_checkpoint(folder, request.param, **changes)


@pytest.fixture(scope="module")
def model(folder):
    return load(folder)


def test_a_checkpoint_folder_answers(model, folder):
    answer = model.generate("hello", length=16, steps=4)
    assert answer.nfe == 4
    assert len(answer.tokens) == 16
    assert answer.finish == ("eos" if set(answer.tokens) & set(model.backbone.end_ids) else "length")
    assert answer.effective_tokens == sum(token not in model.backbone.end_ids for token in answer.tokens)
    assert answer.record.canvas()[0][-16:] == answer.tokens
    assert answer.settings["order"] == "margin"
    assert model.name == str(folder)


def test_end_tokens_and_bans_come_from_the_files(model):
    specials = model.text.specials
    turn = specials.get("<|eot_id|>", specials.get("<|im_end|>"))
    assert model.backbone.end_ids == (specials["<|endoftext|>"], turn)
    assert set(range(model.text.size, 280)) | {model.backbone.mask_id} == set(model.backbone.banned)


def test_a_string_is_a_user_message_and_raw_is_not(model):
    chat = model.generate("hello", length=8, steps=2)
    messages = model.generate([{"role": "user", "content": "hello"}], length=8, steps=2)
    raw = model.generate("hello", raw=True, length=8, steps=2)
    assert chat.tokens == messages.tokens
    assert raw.prompt_tokens < chat.prompt_tokens


def test_many_prompts_and_samples_are_what_each_is_alone(model):
    prompts = ["hello", [{"role": "user", "content": "hello world, hello"}], "a"]
    options = {"length": 12, "steps": 6, "temperature": 0.9, "seed": 5}
    together = model.generate(prompts, samples=3, **options)
    assert len(together) == 9
    assert len({tuple(result.tokens) for result in together[:3]}) > 1
    for index, prompt in enumerate(prompts):
        alone = model.generate(prompt, samples=3, **options)
        assert [result.tokens for result in alone] == [result.tokens for result in together[3 * index : 3 * index + 3]]
        assert model.generate(prompt, **options).tokens == together[3 * index].tokens
    for size in (1, 2, 4):
        assert [result.tokens for result in model.generate(prompts, samples=3, batch=size, **options)] == [
            result.tokens for result in together
        ]


def test_text_ends_at_the_first_end_token():
    toy = load("toy")
    answer = toy.generate("Tell me.", length=128)
    assert answer.finish == "eos"
    assert answer.text.endswith("will follow.")
    assert len(answer.text) == answer.effective_tokens


def test_infill_keeps_the_text_between_the_holes():
    toy = load("toy")
    answer = toy.generate("", template="<hole:5>, they said, <hole:6>.")
    assert len(answer.tokens) == 11
    first, second = answer.holes
    assert answer.text == f"{first}, they said, {second}."


def test_a_template_that_ends_in_its_hole_is_given_whole():
    answer = load("toy").generate("", template="He said: <hole:5>")
    assert answer.text == "He said: " + answer.holes[0]


def test_an_order_of_ones_own_works_in_generate():
    toy = load("toy")
    backwards = top_by(lambda view, stats: view.slots.float())
    mine = toy.generate("Hi", length=32, steps=8, select=backwards, blocks=16)
    assert mine.record.columns["slot"][0] < 16
    assert mine.record.columns["slot"][:3].tolist() == [13, 14, 15]
    assert mine.settings["order"] == "select"
    with pytest.raises(InputError, match="eos='anneal:3' has nothing to act on beside select"):
        toy.generate("Hi", select=backwards, eos="anneal:3")


def test_settings_say_what_was_used():
    answer = load("toy").generate("", template="a <hole:6> b")
    assert (answer.settings["length"], answer.settings["steps"]) == (6, 1)
    assert answer.record.meta["steps"] == 1


def test_infill_after_a_prompt(model):
    answer = model.generate("hello", template="A <hole:3> B <hole:2> C", steps=2)
    assert len(answer.holes) == 2
    assert len(answer.tokens) == 5
    assert " B " in answer.text


def test_recording_changes_nothing_and_can_be_off_or_full():
    toy = load("toy")
    plain, off, full = (toy.generate("Hi", length=32, record=record) for record in (True, False, "full"))
    assert plain.tokens == off.tokens == full.tokens
    assert off.record is None
    assert isinstance(plain.record, Record)
    assert "map_top1" in full.record.columns


def test_seeds():
    toy = load("toy")
    texts = [toy.generate("Hi", length=24, temperature=1.5, seed=seed).tokens for seed in (0, 1, 0)]
    assert texts[0] == texts[2] != texts[1]


def test_schedules_take_arguments():
    toy = load("toy")
    assert toy.prepare("Hi", length=64, steps=8, schedule="progressive:2,2").strategy.counts(64) == progressive_counts(
        64, 8, floor=2, power=2.0
    )
    assert toy.generate("Hi", length=64, steps=8, schedule="dream:0.01", profile="dream", order="top1").nfe == 8


class Scarce:
    """A backbone that runs out of memory on more than `most` rows at a time."""

    def __init__(self, inner, most):
        self.inner, self.most, self.batches = inner, most, []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def encode(self, tokens, lengths, slots):
        self.batches.append(len(tokens))
        if len(tokens) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self.inner.encode(tokens, lengths, slots)

    def head(self, states):
        return self.inner.head(states)

    @property
    def vocab_size(self):
        return self.inner.vocab_size


def scarce(most):
    toy = load("toy")
    return replace(toy, backbone=Scarce(toy.backbone, most))


def test_batch_auto_retries_smaller_and_keeps_what_is_finished():
    prompts = ["one", "two", "three", "four", "five"]
    expected = [result.tokens for result in load("toy").generate(prompts, length=8, steps=2)]
    model = scarce(2)
    # in a fused batch all rows are encoded at once, so the memory need grows with them
    found = model.generate(prompts, length=8, steps=2, fused=True)
    assert [result.tokens for result in found] == expected
    assert model.backbone.batches[:2] == [5, 2]
    assert sum(size > 2 for size in model.backbone.batches) == 1


def test_out_of_memory_says_what_to_do():
    with pytest.raises(MemoryLimitError, match="out of memory decoding 4 rows of up to 11 tokens on cpu; use batch=2"):
        scarce(2).generate(["one", "two", "six", "ten"], length=8, steps=2, fused=True, batch=4)
    with pytest.raises(MemoryLimitError, match="use a shorter window or a smaller dtype"):
        scarce(0).generate("one", length=8, steps=2)


def test_other_runtime_errors_are_not_mistaken_for_a_lack_of_memory():
    model = scarce(9)
    model.backbone.encode = lambda *args: (_ for _ in ()).throw(RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        model.generate("one", length=8, steps=2)


def test_a_job_yields_its_steps_and_refuses_what_cannot_work_before_the_first():
    toy = load("toy")
    job = toy.prepare(["one", "two"], length=8, steps=2, batch=1)
    assert [(step.step, len(job.results)) for step in job] == [(1, 0), (2, 0), (1, 1), (2, 1)]
    assert [result.tokens for result in job.answer] == [
        result.tokens for result in toy.generate(["one", "two"], length=8, steps=2)
    ]
    with pytest.raises(InputError, match="steps=9"):
        toy.prepare("one", length=8, steps=9)


def test_frames_show_the_canvas_after_every_step():
    toy = load("toy")
    job = toy.prepare("Hi", length=12, steps=4)
    run = Run(toy, job.strategy, job.rows, job.seeds)
    frames = list(run.frames())
    assert [frame.step for frame in frames] == [1, 2, 3, 4]
    revealed = [sum(counts) for counts in (run.counts[0][:step] for step in (1, 2, 3, 4))]
    assert [frame.pieces.count("░") for frame in frames] == [12 - number for number in revealed]
    assert "".join(frames[-1].pieces).rstrip("·") == run.results()[0].text
    assert sorted(step for step in frames[-1].revealed_at) == sorted(
        step for step, count in enumerate(run.counts[0], start=1) for _ in range(count)
    )


@pytest.mark.parametrize(("options", "words"), [
    ({"gen_length": 8}, "unknown setting 'gen_length'; here it is 'length'"),
    ({"stesp": 8}, "unknown setting 'stesp'; did you mean 'steps'"),
    ({"order": "margn"}, "unknown order 'margn'; did you mean 'margin'"),
    ({"order": "margin:3"}, "order 'margin:3': margin takes no arguments; write margin"),
    ({"order": "threshold:high"}, "threshold is written threshold:0.9"),
    ({"order": "threshold:nan"}, "threshold is written threshold:0.9"),
    ({"order": "threshold:5"}, "threshold=5.0 must lie between 0 and 1"),
    ({"order": "random:3"}, "random takes no arguments"),
    ({"order": "conv:2.5"}, "width=2.5 must be a whole number"),
    ({"order": "pc"}, "order 'pc' needs a file; write pc:FILE,0.25,10"),
    ({"order": "pc:nowhere.json"}, "token counts nowhere.json cannot be read"),
    ({"order": "p2", "blocks": 16}, "keeps its own counts"),
    ({"eos": "aneal"}, "unknown EOS policy 'aneal'; did you mean 'anneal'"),
    ({"eos": "anneal:3,dump"}, "unknown rule of EOS policy 'anneal', 'dump'; did you mean 'damp'"),
    ({"eos": "anneal:0"}, "EOS temperatures must be positive"),
    ({"schedule": "progresive"}, "unknown schedule 'progresive'; did you mean 'progressive'"),
    ({"schedule": "progressive:9", "steps": 32}, "floor=9 over 32 steps needs 288 tokens but the window has 128; use floor<=4"),
    ({"schedule": "progressive:1.5"}, "floor=1.5 must be a whole number"),
    ({"schedule": "linear:3"}, "linear takes no arguments"),
    ({"schedule": "adaptive"}, "does not decide how many to reveal"),
    ({"order": "threshold", "blocks": 16, "steps": 16}, "leave out steps and schedule beside blocks"),
    ({"first": "p2"}, "keeps its own counts over all steps"),
    ({"order": "p2", "first": "random"}, "keeps its own counts"),
    ({"order": "random", "eos": "anneal:3"}, "has nothing to act on"),
    ({"order": "threshold", "order_temperature": 1.0}, "has no score"),
    ({"blocks": 0}, "blocks=0 must be at least 1"),
    ({"length": "5"}, "length='5' must be a whole number"),
    ({"steps": 16.0}, "steps=16.0 must be a whole number"),
    ({"temperature": "hot"}, "temperature='hot' must be a number"),
    ({"order": 3}, "order=3 must be text"),
    ({"seed": None}, "seed=None must be a whole number"),
    ({"cfg_scale": 1.0}, "classifier-free guidance is not implemented"),
    ({"profile": "lada"}, "unknown profile 'lada'; did you mean 'llada'"),
    ({"first": "randm"}, "unknown order 'randm'; did you mean 'random'"),
    ({"blocks": 48}, "blocks of 48 do not divide a window of 128"),
    ({"blocks": 32, "steps": 30}, "30 steps do not split evenly over 4 blocks"),
    ({"steps": 129}, "steps=129 must lie between 1 and the number of tokens to reveal, 128; use steps<=128"),
    ({"steps": 0}, "steps=0 must be at least 1"),
    ({"length": 0}, "length=0 must lie between 1 and 1000000"),
    ({"length": 5000}, "prompt and window are 5002 tokens .* but the model takes 4096; use length<=4094"),
    ({"temperature": -1.0}, "temperature=-1.0"),
    ({"top_p": 0.9}, "only act when sampling"),
    ({"temperature": 1.0, "top_k": 0}, "top_k=0"),
    ({"seed": -1}, "seed=-1 must lie between"),
    ({"samples": 0}, "samples=0"),
    ({"batch": 0}, "batch=0"),
])  # fmt: skip
def test_bad_settings_are_refused_with_the_fix(options, words):
    with pytest.raises(InputError, match=words):
        load("toy").generate("Hi", **options)


@pytest.mark.parametrize(("prompt", "words"), [
    ("", "the prompt is empty"),
    ([], "a prompt is a string or a list of messages"),
    ("a <mask> b", "holds the mask token at position 2"),
])  # fmt: skip
def test_bad_prompts_are_refused(prompt, words):
    with pytest.raises(InputError, match=words):
        load("toy").generate(prompt)


def test_wrong_types_are_refused_where_no_type_checker_runs():
    calls = ["None", "[1]", "'Hi', batch='8'", "'Hi', record='foo'", "'Hi', samples=True"]
    code = f"""
import unmask
for call in {calls!r}:
    try:
        eval("unmask.load().generate(" + call + ")")
    except unmask.InputError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    numbers = """
import numpy as np
from unmask import *
select = at_step(1, fixed(list(np.array([0, 5]))), otherwise=top_by(top1_probability))
done = decode(ToyBackbone(), Canvas.of([[OPEN] * 6]), counts=np.array([2, 4]), select=select)
print(done.forwards)
"""
    whole = subprocess.run([sys.executable, "-c", numbers], capture_output=True, text=True, check=True)
    assert whole.stdout == "(2,)\n"  # numpy's integers are as good as Python's
    assert done.stdout.splitlines() == [
        "a prompt is a string or a list of messages, or a list of either, not None",
        "a prompt is a string or a list of messages, or a list of either, not [1]",
        "batch='8' must be a whole number of at least 1",
        "record='foo' must be True, False or 'full'",
        "samples=True must be a whole number of at least 1",
    ]


def test_a_template_with_a_mask_token_is_refused():
    with pytest.raises(InputError, match="the template holds the mask token"):
        load("toy").generate("", template="<mask> <hole:2>")


class TestLoad:
    def test_unknown_names(self):
        with pytest.raises(InputError, match="model 'toyy' is no folder here and no hub id"):
            load("toyy")

    def test_wrong_folder(self, tmp_path):
        with pytest.raises(InputError, match=r"has no config.json; give the folder of a published checkpoint"):
            load(tmp_path)
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="is a file; give the folder"):
            load(tmp_path / "file")

    def test_devices_and_dtypes(self, folder):
        with pytest.raises(InputError, match="unknown device 'gpu'"):
            load("toy", device="gpu")
        with pytest.raises(InputError, match="unknown dtype 'bf16'; did you mean 'bfloat16'"):
            load(folder, dtype="bf16")
        if not torch.cuda.is_available():
            with pytest.raises(InputError, match="device 'cuda' is not available: .* finds no GPU; use cpu"):
                load("toy", device="cuda")

    def test_a_dtype_that_the_device_lacks(self, folder, monkeypatch):
        monkeypatch.setattr("unmask.device.supports", lambda dtype, device: dtype == torch.float32)
        with pytest.raises(InputError, match="dtype 'float16' is not supported by cpu; use one of: float32"):
            load(folder, dtype="float16")

    def test_dtype_by_default_on_a_cpu_is_float32(self, folder):
        assert load(folder).dtype == torch.float32

    def test_context_can_be_overridden(self, folder):
        with pytest.raises(InputError, match="the model takes 40"):
            load(folder, context=40).generate("hello hello hello", length=40)
        assert load(folder, context=9000).backbone.context == 9000

    def test_a_hub_model_without_network_is_one_line(self, monkeypatch, tmp_path):
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(InputError, match="'nobody/nothing' is not cached and cannot be downloaded: .*give a local folder"):
            load("nobody/nothing")
