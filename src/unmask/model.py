"""Text in, text out: `unmask.load(name).generate(prompt)`."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from unmask.backbones.base import Backbone
from unmask.backbones.toy import ToyBackbone
from unmask.canvas import OPEN, Canvas
from unmask.checkpoint import free_bytes, load_backbone, read_config
from unmask.device import pick_device, pick_dtype
from unmask.errors import InputError, MemoryLimitError
from unmask.frames import Frame, frames
from unmask.generation import Generation
from unmask.hub import TOY, find_folder
from unmask.loop import decode_steps
from unmask.record import Recorder
from unmask.settings import Settings, Strategy, build_strategy
from unmask.text import Message, Text, toy_text
from unmask.view import Step

Prompt = str | Sequence[Message]
"""Plain text, or chat messages."""


@dataclass(frozen=True, eq=False)
class Model:
    """A backbone with its text."""

    name: str
    backbone: Backbone
    text: Text
    dtype: torch.dtype

    def generate(
        self,
        prompt: Prompt | Sequence[Prompt],
        *,
        template: str | None = None,
        raw: bool = False,
        samples: int = 1,
        batch: int | Literal["auto"] = "auto",
        record: bool | Literal["full"] = True,
        fused: bool = False,
        **options: Any,
    ) -> Any:
        """Answer a prompt (a Generation) or several (a list of them).

        A string becomes a user message if the model has a chat template, unless `raw`. `template` is text with holes
        (`<hole:8>`) that is filled in after the prompt, or by itself if the prompt is empty. `samples` > 1 gives that many
        answers a prompt, of which each has its own random numbers. `batch` rows are decoded at a time; "auto" starts with
        all and halves on lack of memory, keeping what is finished. The other keywords are `Settings`.
        """
        prompts, single = _as_list(prompt)
        strategy = self.strategy(Settings.of(options))
        if samples < 1:
            raise InputError(f"samples={samples} must be at least 1")
        rows = [row for one in prompts for row in [self.row(one, strategy.settings, template=template, raw=raw)] * samples]
        seeds = [(strategy.settings.seed, sample) for _ in prompts for sample in range(samples)]
        if strategy.profile.pads_left:
            rows = _pad_left(rows, self.backbone.end_ids[0])
        done: list[Generation] = []
        size = len(rows) if batch == "auto" else batch
        if size < 1:
            raise InputError(f"batch={size} must be at least 1")
        while len(done) < len(rows):
            part = slice(len(done), len(done) + size)
            try:
                run = Run(self, strategy, rows[part], seeds[part], record=record, fused=fused)
                for _ in run:
                    pass
                done += run.results()
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not _out_of_memory(error):
                    raise
                if batch != "auto" or size == 1:
                    raise MemoryLimitError(self._too_large(rows[part], size)) from None
                size = max(1, size // 2)
                if self.backbone.device.type == "cuda":
                    torch.cuda.empty_cache()
        return done[0] if single and samples == 1 else done

    def strategy(self, settings: Settings) -> Strategy:
        """The functions that these settings name, for this model."""
        backbone = self.backbone
        return build_strategy(settings, vocab_size=backbone.vocab_size, end_ids=backbone.end_ids, dtype=self.dtype)

    def row(self, prompt: Prompt, settings: Settings, *, template: str | None = None, raw: bool = False) -> list[int]:
        """A prompt and its window (or template) as one row of a canvas, checked against the model's limits."""
        if isinstance(prompt, str):
            chat = self.text.template is not None and not raw and prompt != ""
            prompt = [{"role": "user", "content": prompt}] if chat else prompt
        if isinstance(prompt, str):
            row = self.text.encode(prompt, start=True) if prompt else []
        else:
            row = self.text.encode(self.text.chat(prompt))
        if not row and template is None:
            raise InputError("the prompt is empty; give it some text, or a template with holes")
        if self.backbone.mask_id in row:
            place = row.index(self.backbone.mask_id)
            raise InputError(
                f"the prompt holds the mask token at position {place}; take it out, or write <hole:1> in a template instead"
            )
        row += [OPEN] * settings.length if template is None else self.text.with_holes(template)
        if self.backbone.mask_id in row:
            raise InputError("the template holds the mask token; write <hole:1> where a token is to be filled in")
        if len(row) > self.backbone.context:
            fixed = sum(token != OPEN for token in row)
            raise InputError(
                f"prompt and window are {len(row)} tokens ({fixed} + {len(row) - fixed}) but {self.name} takes "
                f"{self.backbone.context}; use length<={max(0, self.backbone.context - fixed)} or a shorter prompt"
            )
        return row

    def _too_large(self, rows: list[list[int]], size: int) -> str:
        longest = max(len(row) for row in rows)
        fix = f"use batch={size // 2}, or batch='auto'" if size > 1 else "use a shorter window or a smaller dtype"
        return f"out of memory decoding {size} rows of up to {longest} tokens on {self.backbone.device}; {fix}"


class Run:
    """One batch being decoded: iterate over its steps, then ask for `results`."""

    def __init__(
        self,
        model: Model,
        strategy: Strategy,
        rows: Sequence[Sequence[int]],
        seeds: Sequence[tuple[int, int]],
        *,
        record: bool | Literal["full"] = True,
        fused: bool = False,
    ) -> None:
        self.model, self.strategy, self.fused = model, strategy, fused
        self.canvas = Canvas.of(rows, seeds=seeds, device=model.backbone.device)
        self.counts = [strategy.counts(holes) for holes in self.canvas.holes]
        meta = {"model": model.name, "dtype": str(model.dtype)[6:], **asdict(strategy.settings)}
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
        yield from frames(changes, start, slots, text=self.model.text, mask_id=backbone.mask_id, end_ids=backbone.end_ids)

    def results(self) -> list[Generation]:
        """A Generation a row, after the last step."""
        assert self.last is not None, "iterate over the run before asking for its results"
        record = self.recorder.finish() if self.recorder is not None else None
        ends, settings = self.model.backbone.end_ids, asdict(self.strategy.settings)
        return [
            Generation.of(
                line[:length], self.canvas.slots[row, :holes].tolist(), text=self.model.text, end_ids=ends, nfe=passes,
                seconds=self.seconds, settings=settings, record=None if record is None else record.row(row),
            )
            for row, (line, length, holes, passes) in enumerate(zip(
                self.canvas.filled(self.last.window).tolist(), self.canvas.lengths, self.canvas.holes, self.last.forwards,
                strict=True,
            ))
        ]  # fmt: skip


def load(
    name: str | Path = TOY,
    *,
    device: str | None = None,
    dtype: str | None = None,
    revision: str | None = None,
    context: int | None = None,
) -> Model:
    """Load a model: `toy`, a checkpoint folder, or a hub id such as "GSAI-ML/LLaDA-8B-Instruct".

    >>> load("toy").generate("Tell me.", length=128).text
    'First write what you know best; leave the end for the end, and the rest will follow.'
    """
    name = str(name)
    place = pick_device(device)
    if name == TOY:
        pick_dtype(dtype, place, 0, None)
        return Model(TOY, ToyBackbone(device=place), toy_text(), torch.float32)
    folder = find_folder(name, revision=revision)
    text = Text.load(folder)
    family, config = read_config(folder, text.specials)
    parameters = sum(torch.Size(weight.shape).numel() for weight in family.weights(config))
    kind = pick_dtype(dtype, place, parameters, free_bytes(place))
    backbone = load_backbone(
        folder, device=place, dtype=kind, specials=text.specials, tokens=min(text.size, config.vocab_size), context=context
    )
    return Model(name, backbone, text, kind)


def load_text(name: str, *, revision: str | None = None) -> tuple[Text, tuple[int, ...]]:
    """A model's text and end tokens, without its weights."""
    if name == TOY:
        return toy_text(), ToyBackbone().end_ids
    folder = find_folder(name, revision=revision)
    text = Text.load(folder)
    return text, read_config(folder, text.specials)[1].end_ids


def _changes(step: Step, slots: list[int]) -> dict[int, int]:
    """Position to token, of the slots of row 0 that a step revealed or masked again."""
    changed = step.choice.reveal[0] if step.choice.hide is None else step.choice.reveal[0] | step.choice.hide[0]
    return {slots[slot]: int(step.window[0, slot]) for slot in changed.nonzero()[:, 0].tolist()}


def _as_list(prompt: Prompt | Sequence[Prompt]) -> tuple[list[Prompt], bool]:
    """Prompts as a list, and whether there was only one: a string or a list of messages."""
    if isinstance(prompt, str):
        return [prompt], True
    items = list(prompt)
    if items and all(isinstance(item, Mapping) for item in items):
        return [items], True  # type: ignore[list-item]
    if not items:
        raise InputError("there is no prompt; give a string, messages, or a list of either")
    return items, False  # type: ignore[return-value]


def _pad_left(rows: list[list[int]], pad: int) -> list[list[int]]:
    width = max(len(row) for row in rows)
    return [[pad] * (width - len(row)) + row for row in rows]


def _out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return any(words in str(error).lower() for words in ("can't allocate memory", "not enough memory"))
