"""Loading: every damage is refused by name, before any compute, and memory stays close to the weights."""

import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import SPECIALS, read, write_checkpoint
from unmask import CheckpointError, InputError, MemoryLimitError, load_backbone
from unmask import checkpoint as loading


def shard_with(folder, name):
    return folder / read(folder / "model.safetensors.index.json")["weight_map"][name]


def rewrite(folder, name, change):
    """Apply `change` to the tensors of the shard that holds `name`."""
    file = shard_with(folder, name)
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


UP = {"llada": "model.transformer.blocks.1.up_proj.weight", "dream": "model.layers.1.mlp.up_proj.weight"}


@pytest.fixture(params=["llada", "dream"])
def damaged(request, tmp_path):
    return write_checkpoint(tmp_path, request.param), UP[request.param]


def test_missing_tensor_is_named(damaged):
    folder, name = damaged
    rewrite(folder, name, lambda tensors: tensors.pop(name))
    index = read(folder / "model.safetensors.index.json")
    del index["weight_map"][name]
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=f"lacks tensor '{name}'"):
        load_backbone(folder)


def test_tensor_that_the_index_promises_is_named(damaged):
    folder, name = damaged
    rewrite(folder, name, lambda tensors: tensors.pop(name))
    with pytest.raises(CheckpointError, match=f"holds '{name}', but it does not"):
        load_backbone(folder)


def test_extra_tensor_is_named(damaged):
    folder, name = damaged
    rewrite(folder, name, lambda tensors: tensors.update(surprise=torch.ones(2)))
    with pytest.raises(CheckpointError, match="holds unknown tensor 'surprise'"):
        load_backbone(folder)


def test_mis_shaped_tensor_is_named_with_both_shapes(damaged):
    folder, name = damaged
    rewrite(folder, name, lambda tensors: tensors.update({name: torch.ones(3, 64)}))
    with pytest.raises(CheckpointError, match=rf"{name}' has shape \[3, 64\], but config.json asks for \[96, 64\]"):
        load_backbone(folder)


def test_truncated_file_names_the_tensor_it_hurts(damaged):
    folder, name = damaged
    file = shard_with(folder, name)
    header = loading.read_header(file)
    last = max(header, key=lambda tensor: header[tensor].end)
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match=f"is cut off: tensor '{last}' ends at byte"):
        load_backbone(folder)


@pytest.mark.parametrize(("content", "words"), [
    (b"", "not a safetensors file"),
    (b"\xff" * 64, "not a safetensors file"),
    (b"\x02\0\0\0\0\0\0\0[]", "damaged header"),
    (b'\x10\0\0\0\0\0\0\0{"a": {"dtype":1', "damaged header"),
])  # fmt: skip
def test_rubbish_is_refused(damaged, content, words):
    folder, name = damaged
    shard_with(folder, name).write_bytes(content)
    with pytest.raises(CheckpointError, match=words):
        load_backbone(folder)


def test_overlapping_repeated_and_trailing_bytes_are_refused(damaged):
    folder, name = damaged
    file = shard_with(folder, name)
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    names = [tensor for tensor in header if tensor != "__metadata__"]

    def write(text, extra=b""):
        padded = text.encode().ljust(-(-len(text.encode()) // 8) * 8)
        file.write_bytes(len(padded).to_bytes(8, "little") + padded + content[8 + length :] + extra)

    same = [tensor for tensor in names if header[tensor]["shape"] == header[names[0]]["shape"]][:2]
    if len(same) == 2:
        moved = {**header, same[1]: header[same[0]]}
        write(json.dumps(moved))
        with pytest.raises(CheckpointError, match="starts at byte"):
            load_backbone(folder)
    write(json.dumps(header)[:-1] + ", " + json.dumps({names[0]: header[names[0]]})[1:])
    with pytest.raises(CheckpointError, match="a name stands twice"):
        load_backbone(folder)
    write(json.dumps(header), b"tail")
    with pytest.raises(CheckpointError, match="4 bytes after its last tensor"):
        load_backbone(folder)
    write(json.dumps(header))
    load_backbone(folder)


def test_end_tokens_must_exist_and_differ_from_the_mask(damaged):
    folder, _ = damaged
    raw = read(folder / "config.json")
    for change, words in (
        ({"eos_token_id": 5000}, "special token 5000 lies outside"),
        ({"eos_token_id": 190}, "both the mask and"),
    ):
        (folder / "config.json").write_text(json.dumps({**raw, **change}))
        with pytest.raises(CheckpointError, match=f"config.json: .*{words}"):
            load_backbone(folder)


def test_missing_shard_is_named(damaged):
    folder, name = damaged
    shard_with(folder, name).unlink()
    with pytest.raises(CheckpointError, match=r"model-0000\d-of-00003.safetensors does not exist"):
        load_backbone(folder)


def test_an_index_cannot_point_outside_its_folder(damaged):
    folder, name = damaged
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {name: "../elsewhere.safetensors"}}))
    with pytest.raises(CheckpointError, match="names a file outside its folder"):
        load_backbone(folder)


@pytest.mark.parametrize(("change", "words"), [
    ({"model_type": "gpt2"}, "model_type 'gpt2' is not supported; supported: llada, Dream, dream"),
    ({"d_model": None, "hidden_size": None}, "config.json has no '(d_model|hidden_size)'"),
    ({"block_type": "sequential", "hidden_act": "gelu"}, "only '(llama|silu)' is supported"),
    ({"n_heads": 5, "num_attention_heads": 5}, "hidden_size=64 must be a multiple of heads=5"),
])  # fmt: skip
def test_a_config_that_cannot_be_built_is_refused(damaged, change, words):
    folder, _ = damaged
    (folder / "config.json").write_text(json.dumps({**read(folder / "config.json"), **change}))
    with pytest.raises(InputError, match=words):
        load_backbone(folder)


@pytest.mark.parametrize("value", ["64", -1, 0, 1.5, True, [64], {}, 10**12, "x"])
def test_every_size_in_a_config_must_be_a_whole_number(damaged, value):
    folder, _ = damaged
    raw = read(folder / "config.json")
    for name in raw:
        if isinstance(raw[name], int) and not isinstance(raw[name], bool) and name not in ("block_group_size", "pad_token_id"):
            if value == 0 and name.endswith("_id"):
                continue  # a token may have id 0
            (folder / "config.json").write_text(json.dumps({**raw, name: value}))
            with pytest.raises(InputError, match=name if value != 10**12 else "must|asks for"):
                load_backbone(folder)


def test_broken_json_is_refused(damaged):
    folder, _ = damaged
    (folder / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config.json is not valid JSON"):
        load_backbone(folder)


def test_what_cannot_fit_is_refused_before_loading_with_what_would(damaged, monkeypatch):
    folder, _ = damaged
    parameters = sum(parameter.numel() for parameter in load_backbone(folder).parameters())
    monkeypatch.setattr(loading, "free_bytes", lambda device: parameters * 3)
    with pytest.raises(MemoryLimitError, match="load it as bfloat16"):
        load_backbone(folder, dtype=torch.float32)
    load_backbone(folder, dtype=torch.bfloat16)


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("wanted", [torch.float32, torch.bfloat16, torch.float16])
def test_every_dtype_loads_as_every_dtype(tmp_path, stored, wanted):
    folder = write_checkpoint(tmp_path, "llada", dtype=stored, shards=5)
    model = load_backbone(folder, dtype=wanted)
    name = "model.transformer.blocks.2.k_proj.weight"
    expected = load_file(shard_with(folder, name))[name].to(wanted)
    assert torch.equal(model.layers[2].qkv.weight[64:128], expected)


def test_shards_and_a_single_file_load_the_same(tmp_path):
    many = write_checkpoint(tmp_path / "many", "dream", shards=7)
    single = tmp_path / "single"
    single.mkdir()
    (single / "config.json").write_bytes((many / "config.json").read_bytes())
    save_file({k: v for f in many.glob("*.safetensors") for k, v in load_file(f).items()}, single / "model.safetensors")
    for ours, theirs in zip(load_backbone(many).parameters(), load_backbone(single).parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_chunks_meet_without_a_seam(tmp_path, monkeypatch):
    folder = write_checkpoint(tmp_path, "llada")
    whole = load_backbone(folder)
    monkeypatch.setattr(loading, "CHUNK_BYTES", 1000)
    for ours, theirs in zip(load_backbone(folder).parameters(), whole.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_rows_without_a_token_and_the_mask_are_banned(checkpoint):
    assert load_backbone(checkpoint, specials=SPECIALS, tokens=195).banned == (190, 195, 196, 197, 198, 199)


MEASURE = """
import sys, torch
from pathlib import Path
from unmask import load_backbone
model = load_backbone(sys.argv[1], dtype=getattr(torch, sys.argv[2]))
weights = sum(p.numel() * p.element_size() for p in model.parameters())
status = Path("/proc/self/status").read_text()  # ru_maxrss would begin with what the parent process had
print(weights, int(status.split("VmHWM:")[1].split()[0]) * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("stored", "wanted"), [(torch.bfloat16, "bfloat16"), (torch.float32, "bfloat16"), (torch.bfloat16, "float32")]
)
def test_peak_memory_stays_near_the_weights(tmp_path, stored, wanted):
    """1.05 x the weights in their final dtype + 1 GiB, on a checkpoint of 1.2 billion parameters."""
    sizes = {"d_model": 2048, "n_layers": 16, "n_heads": 16, "n_kv_heads": 16, "mlp_hidden_size": 5632}
    folder = write_checkpoint(tmp_path, "llada", dtype=stored, shards=4, vocab_size=126464, embedding_size=126464, **sizes)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(folder), wanted], capture_output=True, text=True, check=True)
    weights, peak = (int(number) for number in done.stdout.split())
    assert weights > 2 * 10**9
    assert peak < 1.05 * weights + 2**30
