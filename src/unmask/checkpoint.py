"""Weights from a folder of safetensors, checked by name before anything is computed, in little more memory than they take.

Files are memory-mapped and every part is given back to the system as soon as it is copied, so the peak is the weights in
their final dtype plus one chunk. The headers are read here rather than by the safetensors library because its errors for a
damaged file do not say which tensor is hurt, and because its mapping holds on to every page until the file is closed.
"""

import json
import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unmask.backbones import FAMILIES
from unmask.backbones.families import Family, Weight
from unmask.backbones.transformer import Transformer, TransformerConfig
from unmask.errors import CheckpointError, InputError, MemoryLimitError
from unmask.files import whole

CHUNK_BYTES = 64 * 2**20
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
HEADER_LIMIT = 100 * 2**20
MOST_LAYERS = 1000


@dataclass(frozen=True)
class Stored:
    """Where a tensor lies in a file."""

    file: Path
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    end: int


def load_backbone(
    folder: str | Path,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    specials: Mapping[str, int] | None = None,
    tokens: int | None = None,
    context: int | None = None,
) -> Transformer:
    """Build the model that a checkpoint folder describes and fill it.

    `specials` are the tokenizer's special tokens by name and `tokens` is one more than its highest id; vocabulary rows from
    there on have no token and are banned. `context` overrides the model's own limit.
    """
    folder = Path(folder)
    family, config = read_config(folder, specials or {})
    if context is not None:
        if context < 1:
            raise InputError(f"context={context} must be at least 1")
        config = replace(config, context=context)
    wanted = list(family.weights(config))
    stored = read_index(folder)
    check_tensors(folder, wanted, stored)
    check_memory(family.parameters(config), torch.device(device), dtype)
    with torch.device("meta"):
        limit = config.vocab_size if tokens is None else min(tokens, config.vocab_size)
        model = Transformer(config, banned=(config.mask_id, *range(limit, config.vocab_size))).to(dtype)
    model = model.to_empty(device=device).requires_grad_(False).eval()
    parameters = dict(model.named_parameters())
    for weight in sorted(wanted, key=lambda weight: (str(stored[weight.name].file), stored[weight.name].start)):
        target = parameters[weight.target][weight.start : weight.start + weight.shape[0]]
        _copy(stored[weight.name], target)
    return model


def read_config(folder: Path, specials: Mapping[str, int]) -> tuple[Family, TransformerConfig]:
    """The family that config.json belongs to, and what it says."""
    raw = read_json(folder / "config.json", "a model folder needs the published config.json")
    kind = raw.get("model_type")
    for family in FAMILIES.values():
        if kind in family.model_types:
            try:
                config = family.config(raw, specials)
            except InputError as error:
                raise CheckpointError(f"{folder / 'config.json'}: {error}") from None
            if config.layers > MOST_LAYERS:
                raise CheckpointError(f"{folder / 'config.json'} asks for {config.layers} layers; the most is {MOST_LAYERS}")
            return family, config
    known = ", ".join(kind for family in FAMILIES.values() for kind in family.model_types)
    raise CheckpointError(f"{folder / 'config.json'}: model_type {kind!r} is not supported; supported: {known}")


def read_taught(folder: Path) -> dict[str, str]:
    """How a model knows our tasks, if its config.json says so."""
    taught = read_json(folder / "config.json").get("unmask", {})
    if not isinstance(taught, dict) or not all(isinstance(value, str) for value in taught.values()):
        raise CheckpointError(f"{folder / 'config.json'} has unmask={taught!r}; it must be an object with texts")
    return taught


def read_json(path: Path, why: str = "download it again") -> dict[str, Any]:
    """A JSON object from a file, or one line that says what is wrong with it."""
    if not path.is_file():
        raise CheckpointError(f"{path} does not exist; {why}")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON ({error}); download it again") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a {type(value).__name__}, not an object; download it again")
    return value


def read_index(folder: Path) -> dict[str, Stored]:
    """Every tensor in the folder's shards (by the index if there is one, else model.safetensors)."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        places = read_json(index).get("weight_map")
        if not isinstance(places, dict) or not places or not all(isinstance(name, str) for name in places.values()):
            raise CheckpointError(f"{index} has no weight_map from tensor to file; download it again")
        names = sorted(set(places.values()))
    else:
        places, names = None, ["model.safetensors"]
    stored: dict[str, Stored] = {}
    for name in names:
        if Path(name).name != name or len(name) > 255:
            raise CheckpointError(f"{index} names a file outside its folder: {name[:80]!r}")
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder / name} does not exist; download the checkpoint again, shards and all")
        stored.update(read_header(folder / name))
    if places is not None:
        for tensor, name in places.items():
            if tensor not in stored or stored[tensor].file.name != name:
                raise CheckpointError(f"{index} says that {name} holds {tensor!r}, but it does not; download it again")
    return stored


def read_header(path: Path) -> dict[str, Stored]:
    """The tensors of one safetensors file; a truncated or damaged one is refused by the name of the tensor it hurts."""
    size = path.stat().st_size
    with path.open("rb") as file:
        prefix = file.read(8)
        length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else HEADER_LIMIT + 1
        if length > min(HEADER_LIMIT, size - 8):
            raise CheckpointError(f"{path} is not a safetensors file, or is cut off in its header; download it again")
        try:
            header = json.loads(file.read(length), object_pairs_hook=_without_duplicates)
            entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
            stored = {name: _entry(path, entry, 8 + length) for name, entry in entries.items()}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise CheckpointError(f"{path} has a damaged header ({error}); download it again") from None
    reached = 8 + length
    for name, place in sorted(stored.items(), key=lambda item: (item[1].start, item[1].end)):
        if place.end > size:
            raise CheckpointError(
                f"{path} is cut off: tensor {name!r} ends at byte {place.end}, the file at {size}; download it again"
            )
        if place.end - place.start != prod(place.shape) * place.dtype.itemsize:
            raise CheckpointError(f"{path}: tensor {name!r} has the wrong number of bytes for its shape; download it again")
        if place.start != reached:
            raise CheckpointError(f"{path}: tensor {name!r} starts at byte {place.start}, not at {reached}; download it again")
        reached = place.end
    if reached != size:
        raise CheckpointError(f"{path} has {size - reached} bytes after its last tensor; download it again")
    return stored


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _entry(path: Path, entry: Mapping[str, Any], base: int) -> Stored:
    start, end = (base + int(offset) for offset in entry["data_offsets"])
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"dtype {entry['dtype']} is not one of {', '.join(DTYPES)}")
    shape = tuple(int(size) for size in entry["shape"])
    if start < base or end < start or any(size < 0 for size in shape):
        raise ValueError("negative offsets or sizes")
    return Stored(path, DTYPES[entry["dtype"]], shape, start, end)


def check_tensors(folder: Path, wanted: list[Weight], stored: Mapping[str, Stored]) -> None:
    """Refuse missing, extra and mis-shaped tensors by name."""
    names = {weight.name for weight in wanted}
    missing = [weight.name for weight in wanted if weight.name not in stored]
    extra = sorted(name for name in stored if name not in names)
    for what, found in (("lacks", missing), ("holds unknown", extra)):
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            raise CheckpointError(f"{folder} {what} tensor {found[0]!r}{more}; it does not match its config.json")
    for weight in wanted:
        if stored[weight.name].shape != weight.shape:
            raise CheckpointError(
                f"{stored[weight.name].file}: tensor {weight.name!r} has shape {list(stored[weight.name].shape)}, "
                f"but config.json asks for {list(weight.shape)}"
            )


def check_memory(parameters: int, device: torch.device, dtype: torch.dtype) -> None:
    """Refuse before loading what cannot fit, and say what would."""
    free = free_bytes(device)
    need = parameters * dtype.itemsize
    if free is None or need <= free:
        return
    half = parameters * 2
    fix = "load it as bfloat16" if half <= free < need else "use a device with more memory"
    raise MemoryLimitError(
        f"{parameters:,} parameters in {str(dtype)[6:]} need {need / 2**30:.1f} GiB, but {device} has {free / 2**30:.1f} GiB "
        f"free; {fix} (bfloat16 needs {half / 2**30:.1f} GiB)"
    )


def free_bytes(device: torch.device) -> int | None:
    """Memory that is free on the device now; None where nobody says."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "mps":
        return max(0, torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _copy(source: Stored, target: Tensor) -> None:
    """Copy a stored tensor into a parameter, chunk by chunk, handing every page back when it is done."""
    flat = target.view(-1)
    step = CHUNK_BYTES // source.dtype.itemsize
    with source.file.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        for begin in range(0, flat.numel(), step):
            count = min(step, flat.numel() - begin)
            offset = source.start + begin * source.dtype.itemsize
            part = torch.frombuffer(mapped, dtype=torch.uint8, count=count * source.dtype.itemsize, offset=offset)
            # offsets need not be aligned, so the bytes are copied before they become numbers
            flat[begin : begin + count].copy_(part.clone().view(source.dtype))
            del part
            if hasattr(mmap, "MADV_DONTNEED"):
                low = offset // mmap.PAGESIZE * mmap.PAGESIZE
                mapped.madvise(mmap.MADV_DONTNEED, low, offset + count * source.dtype.itemsize - low)


def save_checkpoint(folder: str | Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor], *, shards: int = 1) -> None:
    """Write a checkpoint in the published layout: config.json, shards and their index; whole files or none."""
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = list(tensors)
    if not 1 <= shards <= len(names):
        raise InputError(f"shards={shards} must lie between 1 and the number of tensors, {len(names)}")
    places: dict[str, str] = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        part = names[shard::shards]
        with whole(folder / file) as path:
            save_file({name: tensors[name].contiguous() for name in part}, path, metadata={"format": "pt"})
        places.update(dict.fromkeys(part, file))
    total = sum(tensor.numel() * tensor.dtype.itemsize for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    for file, value in (("model.safetensors.index.json", index), ("config.json", dict(config))):
        with whole(folder / file) as path:
            path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def random_tensors(family: Family, config: TransformerConfig, *, seed: int, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Random weights by published name, one tensor at a time, scaled so that states and logits stay of order one."""
    generator = torch.Generator().manual_seed(seed)
    for weight in family.weights(config):
        if weight.target.endswith("norm.weight"):
            value = 1 + 0.1 * torch.randn(weight.shape, generator=generator)
        elif weight.target.endswith("bias"):
            value = 0.5 * torch.randn(weight.shape, generator=generator)
        else:
            scale = 1.0 if weight.target == "embed.weight" else weight.shape[-1] ** -0.5
            scale *= 3.0 if weight.target == "lm_head.weight" else 1.0
            value = scale * torch.randn(weight.shape, generator=generator)
        yield weight.name, value.to(dtype)
