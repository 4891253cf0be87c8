"""Text in, text out: `unmask.load(name).generate(prompt)`."""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch

from unmask.backbones.base import Backbone
from unmask.backbones.toy import ToyBackbone
from unmask.canvas import OPEN, Canvas
from unmask.checkpoint import load_backbone, read_config, read_taught
from unmask.device import pick_device, pick_dtype
from unmask.errors import InputError, MemoryLimitError
from unmask.frames import Frame, frames
from unmask.generation import Generation
from unmask.hub import TINY, TOY, find_folder
from unmask.loop import decode_steps
from unmask.prompts import Prompt, Row, as_list, pad_left, prompt_row
from unmask.record import Recorder
from unmask.selection import Select
from unmask.settings import Settings, Strategy, build_strategy
from unmask.text import Text, toy_text
from unmask.view import Step


@dataclass(frozen=True, eq=False)
class Model:
    """A backbone with its text."""

    name: str
    backbone: Backbone
    text: Text
    dtype: torch.dtype
    taught: Mapping[str, str] = field(default_factory=dict)
    """How the model knows the tasks, from "unmask" in its config.json: the `prompt` it was taught with, and the `level`."""

    @cached_property
    def fingerprint(self) -> str:
        """Tells these weights from others: a hash of the tensors' names and shapes and of numbers spread over each of them."""
        digest = hashlib.sha256(type(self.backbone).__name__.encode())
        for name, tensor in self.backbone.state_dict().items() if isinstance(self.backbone, torch.nn.Module) else ():
            spread = tensor.detach().flatten()[:: max(1, tensor.numel() // 1009)]
            digest.update(f"{name}{tuple(tensor.shape)}".encode() + spread.float().cpu().numpy().tobytes())
        return digest.hexdigest()[:16]

    def generate(self, prompt: Prompt | Sequence[Prompt], **options: Any) -> Any:
        """Answer a prompt (a Generation) or several (a list of them); the keywords are those of `prepare`."""
        job = self.prepare(prompt, **options)
        for _ in job:
            pass
        return job.answer

    def prepare(
        self,
        prompt: Prompt | Sequence[Prompt],
        *,
        template: str | None = None,
        raw: bool = False,
        samples: int = 1,
        seeds: Sequence[tuple[int, int]] | None = None,
        batch: int | Literal["auto"] = "auto",
        record: bool | Literal["full"] = True,
        fused: bool = False,
        select: Select | None = None,
        **options: Any,
    ) -> "Job":
        """What `generate` runs, checked and ready: iterate over its steps, then take its answer.

        A string becomes a user message if the model has a chat template, unless `raw`. `template` is text with holes
        (`<hole:8>`) that is filled in after the prompt, or by itself if the prompt is empty. With `samples` > 1 every prompt
        gets that many answers, each from its own random numbers. `seeds` gives each prompt its own (seed, number of the
        sample). `batch` rows are decoded at a time; "auto" starts with all and halves on lack of memory, keeping what is
        finished. `select` is an order of your own, in place of a named one. The other keywords are `Settings`.
        """
        prompts, single = as_list(prompt)
        for name, number in (("samples", samples), ("batch", 1 if batch == "auto" else batch)):
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise InputError(f"{name}={number!r} must be a whole number of at least 1")
        if record not in (True, False, "full"):
            raise InputError(f"record={record!r} must be True, False or 'full'")
        if template is not None and "length" in options:
            raise InputError(f"length={options['length']} has no meaning beside a template, whose holes have their own lengths")
        if seeds is not None and (len(seeds) != len(prompts) or samples > 1 or "seed" in options):
            raise InputError(
                f"{len(seeds)} seeds for {len(prompts)} prompts; give one each, and no seed or samples beside them"
            )
        strategy = self.strategy(Settings.of(options), select=select)
        rows = []
        for one in prompts:
            row = prompt_row(one, strategy.settings.length, text=self.text, backbone=self.backbone, template=template, raw=raw)
            strategy.counts(row.tokens.count(OPEN))  # refused now rather than in the middle of a batch
            rows += [row] * samples
        if seeds is None:
            seeds = [(strategy.settings.seed, sample) for _ in prompts for sample in range(samples)]
        return Job(self, strategy, rows, seeds, batch=batch, record=record, fused=fused, single=single and samples == 1)

    def strategy(self, settings: Settings, *, select: Select | None = None) -> Strategy:
        """The functions that these settings name, for this model."""
        return build_strategy(
            settings, vocab_size=self.backbone.vocab_size, end_ids=self.backbone.end_ids, dtype=self.dtype, select=select
        )


class Run:
    """One batch being decoded: iterate over its steps, then ask for `results`."""

    def __init__(
        self,
        model: Model,
        strategy: Strategy,
        rows: Sequence[Row],
        seeds: Sequence[tuple[int, int]],
        *,
        record: bool | Literal["full"] = True,
        fused: bool = False,
    ) -> None:
        self.model, self.strategy, self.rows, self.fused = model, strategy, rows, fused
        self.canvas = Canvas.of([row.tokens for row in rows], seeds=seeds, device=model.backbone.device)
        self.counts = [strategy.counts(holes) for holes in self.canvas.holes]
        self.settings = asdict(strategy.settings)
        meta = {
            "model": model.name, "dtype": str(model.dtype)[6:], "end_ids": list(model.backbone.end_ids), **self.settings,
            "steps": self.steps,
        }  # fmt: skip
        detail = "full" if record == "full" else "reveals"
        self.recorder = Recorder(self.canvas, model.backbone.mask_id, detail=detail, meta=meta) if record else None
        self.last: Step | None = None
        self.seconds = 0.0

    @property
    def steps(self) -> int:
        """The most steps that the decode can take."""
        return max(len(counts) for counts in self.counts)

    def __iter__(self) -> Iterator[Step]:
        start = time.perf_counter()
        banned = None if self.strategy.profile.bans else ()
        for step in decode_steps(
            self.model.backbone, self.canvas, counts=self.counts, select=self.strategy.select, pick=self.strategy.pick,
            banned=banned, fused=self.fused,
        ):  # fmt: skip
            if self.recorder is not None:
                self.recorder.add(step)
            self.last = step
            self.seconds = time.perf_counter() - start
            yield step

    def frames(self) -> Iterator[Frame]:
        """Decode, yielding what there is to see of the first row after every step."""
        canvas, backbone = self.canvas, self.model.backbone
        slots = canvas.slots[0, : canvas.holes[0]].tolist()
        start = canvas.filled(canvas.masked(backbone.mask_id))[0, : canvas.lengths[0]].tolist()
        changes = ((step.step, _changes(step, slots)) for step in self)
        yield from frames(
            changes, start, first=self.rows[0].start, text=self.model.text, mask_id=backbone.mask_id, end_ids=backbone.end_ids
        )

    def results(self) -> list[Generation]:
        """A Generation a row, after the last step."""
        assert self.last is not None, "iterate over the run before asking for its results"
        record = self.recorder.finish() if self.recorder is not None else None
        lines = self.canvas.filled(self.last.window).tolist()
        return [
            Generation.of(
                lines[row][: self.canvas.lengths[row]], self.canvas.slots[row, : self.canvas.holes[row]].tolist(),
                start=self.rows[row].start, text=self.model.text, end_ids=self.model.backbone.end_ids,
                nfe=self.last.forwards[row], seconds=self.seconds,
                settings={**self.settings, "length": self.canvas.holes[row], "steps": len(self.counts[row])},
                record=None if record is None else record.row(row),
            )
            for row in range(len(lines))
        ]  # fmt: skip


class Job:
    """Prompts being decoded, a batch at a time: iterate over the steps, then take the `answer`."""

    def __init__(
        self,
        model: Model,
        strategy: Strategy,
        rows: Sequence[Row],
        seeds: Sequence[tuple[int, int]],
        *,
        batch: int | Literal["auto"] = "auto",
        record: bool | Literal["full"] = True,
        fused: bool = False,
        single: bool = False,
    ) -> None:
        self.model, self.strategy, self.rows, self.seeds = model, strategy, rows, seeds
        self.batch, self.record, self.fused, self.single = batch, record, fused, single
        self.results: list[Generation] = []

    @property
    def answer(self) -> Any:
        """A Generation for one prompt and sample, else the list of them."""
        return self.results[0] if self.single else self.results

    def __iter__(self) -> Iterator[Step]:
        size = len(self.rows) if self.batch == "auto" else self.batch
        while len(self.results) < len(self.rows):
            run = self.run(size)
            try:
                yield from run
                self.results += run.results()
                continue
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not _out_of_memory(error):
                    raise
            rows = len(run.rows)
            if self.batch != "auto" or rows == 1:
                raise MemoryLimitError(self._too_large(run.rows))
            del run
            size = rows // 2
            if self.model.backbone.device.type == "cuda":
                torch.cuda.empty_cache()

    def run(self, size: int) -> Run:
        """The next `size` rows, ready to be decoded."""
        part = slice(len(self.results), len(self.results) + size)
        rows = pad_left(self.rows[part], self.model.backbone.end_ids[0]) if self.strategy.profile.pads_left else self.rows[part]
        return Run(self.model, self.strategy, rows, self.seeds[part], record=self.record, fused=self.fused)

    def _too_large(self, rows: Sequence[Row]) -> str:
        longest, size = max(len(row.tokens) for row in rows), len(rows)
        fix = f"use batch={size // 2}, or batch='auto'" if size > 1 else "use a shorter window or a smaller dtype"
        return f"out of memory decoding {size} rows of up to {longest} tokens on {self.model.backbone.device}; {fix}"


def load(
    name: str | Path = TINY,
    *,
    device: str | None = None,
    dtype: str | None = None,
    revision: str | None = None,
    context: int | None = None,
) -> Model:
    """Load a model: `tiny` (inside the package), `toy`, a checkpoint folder, or a hub id such as "GSAI-ML/LLaDA-8B-Instruct".

    >>> load("toy").generate("Tell me.", length=128).text
    'First write what you know best; leave the end for the end, and the rest will follow.'
    """
    name = str(name)
    place = pick_device(device)
    kind = pick_dtype(dtype, place)
    if name == TOY:
        for option, value in (
            ("dtype", None if kind == torch.float32 else dtype),
            ("revision", revision),
            ("context", context),
        ):
            if value is not None:
                raise InputError(f"{option}={value!r} has no meaning for the toy, which has no weights; leave it out")
        return Model(TOY, ToyBackbone(device=place), toy_text(), torch.float32)
    folder = find_folder(name, revision=revision)
    text = Text.load(folder)
    backbone = load_backbone(folder, device=place, dtype=kind, specials=text.specials, tokens=text.size, context=context)
    return Model(name, backbone, text, kind, read_taught(folder))


def load_text(name: str, *, revision: str | None = None) -> tuple[Text, tuple[int, ...], int]:
    """A model's text, end tokens and mask token, without its weights."""
    if name == TOY:
        toy = ToyBackbone()
        return toy_text(), toy.end_ids, toy.mask_id
    folder = find_folder(name, revision=revision, weights=False)
    text = Text.load(folder)
    config = read_config(folder, text.specials)[1]
    return text, config.end_ids, config.mask_id


def _changes(step: Step, slots: list[int]) -> dict[int, int]:
    """Position to token, of the slots of row 0 that a step revealed or masked again."""
    changed = step.choice.reveal[0] if step.choice.hide is None else step.choice.reveal[0] | step.choice.hide[0]
    return {slots[slot]: int(step.window[0, slot]) for slot in changed.nonzero()[:, 0].tolist()}


def _out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return any(words in str(error).lower() for words in ("can't allocate memory", "not enough memory", "out of memory"))
