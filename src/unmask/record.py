"""The record of a decode: what was revealed where, when, and how sure the model was of it.

A record is one safetensors file: columns of numbers with a JSON header. It is compact (36 bytes for a revealed slot),
opens by memory map without a parser, cannot carry code, is read by every language that reads safetensors, and brings no
dependency that the weights do not need anyway. A checksum over the columns tells a damaged file from a whole one.
"""

# B batch, L open slots, T steps, N events (slots revealed or masked again)
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unmask.canvas import Canvas
from unmask.errors import InputError, RecordError
from unmask.files import whole
from unmask.predictions import Stats
from unmask.view import Step

VERSION = 1
Array = NDArray[Any]

EVENTS = {
    "row": np.uint32, "step": np.uint32, "slot": np.uint32, "position": np.uint32, "token": np.int32,
    "top1": np.float32, "margin": np.float32, "runner_up": np.int32, "end_mass": np.float32,
}  # fmt: skip
"""One entry for each slot that was revealed, or masked again (then `token` is the mask)."""
STEPS = {"step_row": np.uint32, "step_step": np.uint32, "masked": np.uint32, "ties": np.uint32, "mean_end_mass": np.float32}
"""One entry for each row and step: slots masked before it, exact ties at its cut, mean probability of an end token."""
CANVAS = {"tokens": np.int32, "lengths": np.uint32, "slots": np.uint32, "holes": np.uint32}
"""The canvas before the first step: the rows' tokens and open positions, one row after the other."""
FLUSH = 32
"""Steps are kept as they are until there are this many, then turned into columns together: cheap, and bounded in memory."""
MAP = {"map_top1": np.float16}
"""Only with detail="full": the probability of the argmax of every masked slot, step by step, row by row."""


@dataclass(frozen=True, eq=False)
class Record:
    """Everything that happened in a decode, as numpy columns."""

    columns: Mapping[str, Array]
    mask_id: int
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns["lengths"])

    @property
    def steps(self) -> int:
        """The number of the last step."""
        return int(self.columns["step_step"].max(initial=0))

    def row(self, index: int) -> "Record":
        """The record of one row alone."""
        c = dict(self.columns)
        if not 0 <= index < len(self):
            raise InputError(f"row {index} does not exist; the record has {len(self)} rows, from 0")
        mine, steps = c["row"] == index, c["step_row"] == index
        if "map_top1" in c:
            ends = np.cumsum(c["masked"])
            chosen = [c["map_top1"][end - count : end] for end, count in zip(ends[steps], c["masked"][steps], strict=True)]
            c["map_top1"] = np.concatenate(chosen)
        for name, start, size in (("tokens", "lengths", "lengths"), ("slots", "holes", "holes")):
            begin = int(c[start][:index].sum())
            c[name] = c[name][begin : begin + int(c[size][index])]
        for group, keep in ((EVENTS, mine), (STEPS, steps)):
            c.update({name: c[name][keep] for name in group})
        c["row"], c["step_row"] = np.zeros_like(c["row"]), np.zeros_like(c["step_row"])
        c["lengths"], c["holes"] = c["lengths"][index : index + 1], c["holes"][index : index + 1]
        return Record(c, self.mask_id, self.meta)

    def canvas(self, step: int | None = None) -> list[list[int]]:
        """The rows as they stood after `step` (default: the last), token by token as the decoder had them."""
        c = self.columns
        rows = np.split(c["tokens"].astype(np.int64), np.cumsum(c["lengths"])[:-1])
        for row, slots in zip(rows, np.split(c["slots"], np.cumsum(c["holes"])[:-1]), strict=True):
            row[slots] = self.mask_id
        done = c["step"] <= (self.steps if step is None else step)
        for index, row in enumerate(rows):
            mine = done & (c["row"] == index)
            row[c["position"][mine]] = c["token"][mine]  # events are in the order of their steps: the last one holds
        return [[int(token) for token in row] for row in rows]

    def lines(self) -> Iterator[dict[str, Any]]:
        """One plain object a step and row, for JSON lines."""
        c = self.columns
        for index in range(len(c["step_row"])):
            row, step = int(c["step_row"][index]), int(c["step_step"][index])
            mine = (c["row"] == row) & (c["step"] == step)
            yield {
                "row": row,
                "step": step,
                "masked": int(c["masked"][index]),
                "ties": int(c["ties"][index]),
                "mean_end_mass": _number(c["mean_end_mass"][index]),
                "events": [
                    {name: _number(c[name][event]) for name in EVENTS if name not in ("row", "step")}
                    for event in np.flatnonzero(mine)
                ],
            }

    def json_lines(self) -> Iterator[str]:
        """The record as JSON lines: a header, then a line a step and row."""
        yield json.dumps({"unmask_record": VERSION, "mask_id": self.mask_id, **self.meta})
        for line in self.lines():
            yield json.dumps(line)

    def write_jsonl(self, path: str | Path) -> None:
        """Export to JSON lines."""
        with whole(path) as part:
            part.write_text("".join(f"{line}\n" for line in self.json_lines()), encoding="utf-8")

    def save(self, path: str | Path) -> None:
        """Write the record as one file, whole or not at all."""
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

        columns = {name: np.ascontiguousarray(column) for name, column in self.columns.items()}
        header = {"unmask_record": str(VERSION), "mask_id": str(self.mask_id), "meta": json.dumps(dict(self.meta))}
        header["crc32"] = str(_checksum(columns, header))
        with whole(path) as part:
            try:
                save_file(columns, part, metadata=header)
            except SafetensorError as error:  # what the library makes of a full disk
                raise OSError(f"{path} cannot be written: {error}") from None

    @staticmethod
    def load(path: str | Path) -> "Record":
        """Read a record; anything else is refused with the reason."""
        from safetensors import SafetensorError, safe_open

        path = Path(path)
        if not path.is_file():
            raise RecordError(f"{path} does not exist; give the path of a record that --record wrote")
        try:
            with safe_open(path, framework="numpy") as file:
                header = file.metadata() or {}
                columns = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
        except (SafetensorError, OSError, ValueError, TypeError) as error:
            raise RecordError(f"{path} is not a record, or is damaged ({error}); record the decode again") from None
        if header.get("unmask_record") != str(VERSION):
            found = header.get("unmask_record", "none")
            raise RecordError(f"{path} has record version {found}, this unmask reads {VERSION}; record the decode again")
        if header.pop("crc32", None) != str(_checksum(columns, header)):
            raise RecordError(f"{path} is damaged: its checksum does not match its content; record the decode again")
        _check_columns(path, columns)
        try:
            meta, mask_id = json.loads(header["meta"]), int(header["mask_id"])
            if not isinstance(meta, dict) or not 0 <= mask_id < 2**31:
                raise ValueError("meta or mask_id")
            return Record(columns, mask_id, meta)
        except (KeyError, ValueError, RecursionError) as error:
            raise RecordError(f"{path} has a damaged header ({error}); record the decode again") from None


class Recorder:
    """Collects steps into a Record. Most steps it only keeps; the work is done for many at a time."""

    def __init__(self, canvas: Canvas, mask_id: int, *, detail: str = "reveals", meta: Mapping[str, Any] | None = None) -> None:
        if detail not in ("reveals", "full"):
            raise InputError(f"detail={detail!r} must be 'reveals' or 'full'")
        self.canvas, self.mask_id, self.detail, self.meta = canvas, mask_id, detail, dict(meta or {})
        self._kept: list[_Kept] = []
        self._parts: list[dict[str, Array]] = []

    def add(self, step: Step) -> None:
        """Take note of a step."""
        stats, choice = step.view.stats, step.choice
        small = {name: getattr(stats, name) for name in PREDICTED}  # not the stats themselves, which hold on to the states
        hide = torch.zeros_like(choice.reveal) if choice.hide is None else choice.hide
        kept = _Kept(step.step, choice.reveal, hide, step.view.masked, step.window, choice.score, small, stats.end_ids)
        self._kept.append(kept)
        if len(self._kept) >= FLUSH:
            self._flush()

    def finish(self) -> Record:
        """The record of all steps so far."""
        self._flush()
        if not self._parts:
            raise InputError("nothing was decoded yet, so there is nothing to record")
        columns = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        rows = [self.canvas.tokens[index, :length] for index, length in enumerate(self.canvas.lengths)]
        canvas = {
            "tokens": torch.cat(rows), "lengths": torch.tensor(self.canvas.lengths),
            "slots": self.canvas.slots[self.canvas.open], "holes": torch.tensor(self.canvas.holes),
        }  # fmt: skip
        return Record({**columns, **_columns(canvas, CANVAS)}, self.mask_id, self.meta)

    def _flush(self) -> None:
        """Turn the steps kept so far into columns, all at once."""
        if not self._kept:
            return
        kept, self._kept = self._kept, []
        reveal, hide, masked, window = (
            torch.stack([getattr(step, name) for step in kept]) for name in ("reveal", "hide", "masked", "window")
        )
        first = kept[0].step
        predicted = {name: torch.cat([step.predicted[name] for step in kept]) for name in PREDICTED}
        stats = Stats(**predicted, end_ids=kept[0].end_ids, rest_entropy=_no_entropy)
        top1, margin, other, mass = (
            values.reshape(masked.shape) for values in (stats.probability, stats.margin, stats.other_id, stats.end_mass)
        )
        step, row, slot = (reveal | hide).nonzero().unbind(1)
        at = (step, row, slot)
        known = masked[at]  # a slot that is masked again was predicted, but not ranked as masked
        events = {
            "row": row, "step": step + first, "slot": slot, "position": self.canvas.slots[row, slot], "token": window[at],
            "top1": torch.where(known, top1[at], torch.nan), "margin": torch.where(known, margin[at], torch.nan),
            "runner_up": other[at], "end_mass": torch.where(known, mass[at], torch.nan),
        }  # fmt: skip
        left = masked.sum(-1)
        lived = left.nonzero()
        by_step = (lived[:, 0], lived[:, 1])
        mean = torch.where(masked, mass, 0.0).sum(-1) / left.clamp_min(1)
        ties = torch.stack([_ties(step) for step in kept])
        by_row = {
            "step_row": lived[:, 1], "step_step": lived[:, 0] + first, "masked": left[by_step], "ties": ties[by_step],
            "mean_end_mass": mean[by_step],
        }  # fmt: skip
        maps = {"map_top1": top1[masked]} if self.detail == "full" else {}
        self._parts.append(_columns({**events, **by_row, **maps}, {**EVENTS, **STEPS, **MAP}))


def _columns(values: Mapping[str, Tensor], kinds: Mapping[str, Any]) -> dict[str, Array]:
    return {name: column.cpu().numpy().astype(kinds[name]) for name, column in values.items()}


PREDICTED = ("token", "best_id", "best", "second_id", "second", "spread", "ends")


@dataclass(frozen=True, eq=False)
class _Kept:
    """What a record needs of a step; nothing here is larger than [B, L]."""

    step: int
    reveal: Tensor
    hide: Tensor
    masked: Tensor
    window: Tensor
    score: Tensor | None
    predicted: dict[str, Tensor]
    end_ids: tuple[int, ...]


def _no_entropy() -> Tensor:
    raise AssertionError("a record does not hold entropies")


def _ties(step: _Kept) -> Tensor:
    """Masked slots of each row left out although their score equals that of the last one taken."""
    if step.score is None:
        return torch.zeros_like(step.masked.sum(-1))
    taken = step.reveal & ~step.score.isnan()
    cut = torch.where(taken, step.score, torch.inf).amin(-1, keepdim=True)
    return ((step.score == cut) & step.masked & ~step.reveal).sum(-1)


def _number(value: Any) -> int | float | None:
    number = value.item()
    return None if math.isnan(number) else number  # JSON has no NaN


def _checksum(columns: Mapping[str, Array], header: Mapping[str, str]) -> int:
    total = zlib.crc32(json.dumps(dict(header), sort_keys=True).encode())
    for name in sorted(columns):
        total = zlib.crc32(np.ascontiguousarray(columns[name]).tobytes(), zlib.crc32(name.encode(), total))
    return total


def _check_columns(path: Path, columns: Mapping[str, Array]) -> None:
    """Refuse columns that are missing, of another type, or do not fit together."""
    for name, kind in {**EVENTS, **STEPS, **CANVAS}.items():
        if name not in columns or columns[name].dtype != kind or columns[name].ndim != 1:
            raise RecordError(f"{path} has no column {name!r} of {np.dtype(kind)}; record the decode again")
    for group in (EVENTS, STEPS):
        if len({len(columns[name]) for name in group}) != 1:
            raise RecordError(f"{path}: columns {', '.join(group)} differ in length; record the decode again")
    lengths = columns["lengths"]
    if not len(lengths) or not columns["holes"].all() or (columns["tokens"] < 0).any() or (columns["token"] < 0).any():
        raise RecordError(f"{path}: the canvas has no rows, no open slots or negative tokens; record the decode again")
    fits = lengths.sum() == len(columns["tokens"]) and columns["holes"].sum() == len(columns["slots"])
    if not fits or len(lengths) != len(columns["holes"]) or (columns["row"] >= len(lengths)).any():
        raise RecordError(f"{path}: the canvas and the events do not fit together; record the decode again")
    if "map_top1" in columns and len(columns["map_top1"]) != columns["masked"].sum():
        raise RecordError(f"{path}: column 'map_top1' does not fit the steps; record the decode again")
    if (columns["slots"] >= np.repeat(lengths, columns["holes"])).any():
        raise RecordError(f"{path}: an open slot lies outside its row; record the decode again")
    if (columns["position"] >= lengths[columns["row"]]).any():
        raise RecordError(f"{path}: an event lies outside its row; record the decode again")
