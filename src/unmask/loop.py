"""The denoising loop, the only one in this package: everything else is a function passed to it or a caller of it."""

# B batch, S canvas, L open slots, D hidden
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmask.backbones.base import Backbone
from unmask.canvas import Canvas
from unmask.counts import Counts, check_counts
from unmask.errors import InputError, RuleError
from unmask.pick import Pick, greedy
from unmask.predictions import Predictions, padded
from unmask.selection import Select
from unmask.view import Choice, Step, View


@torch.no_grad()
def decode_steps(
    backbone: Backbone,
    canvas: Canvas,
    *,
    counts: Counts | Sequence[Counts],
    select: Select,
    pick: Pick = greedy,
    banned: Sequence[int] | None = None,
    fused: bool = False,
) -> Iterator[Step]:
    """Reveal slots step by step, yielding every step, until no mask is left (algorithm 2 of the paper).

    `counts[d-1]` slots are revealed in each row at step d = 1..T: exactly, by most rules, and at least, by adaptive ones,
    which then finish early. One sequence of counts serves all rows, or each row has its own. `banned` tokens are never
    committed (default: the backbone's). `fused` encodes the whole batch in one padded pass: faster where rows are short,
    but the last bits of a row then depend on its neighbours.
    """
    rows = _counts_of_rows(counts, canvas)
    check_canvas(backbone, canvas)
    steps = torch.tensor([len(row) for row in rows], device=canvas.tokens.device)
    never = torch.tensor(backbone.banned if banned is None else banned, dtype=torch.int64, device=canvas.tokens.device)
    lengths = torch.tensor(canvas.lengths, device=canvas.tokens.device)
    window = canvas.masked(backbone.mask_id)
    forwards, before = [0] * len(rows), None
    for step in range(1, max(len(row) for row in rows) + 1):
        masked = canvas.open & (window == backbone.mask_id) & (steps >= step)[:, None]
        left = [int(count) for count in masked.sum(1)]
        if not any(left):
            return
        forwards = [done + (count > 0) for done, count in zip(forwards, left, strict=True)]
        count = [min(row[min(step, len(row)) - 1], most) for row, most in zip(rows, left, strict=True)]
        states = encode(backbone, canvas, window, [most > 0 for most in left], fused=fused)
        before = Predictions(backbone, states, masked, end_ids=backbone.end_ids, banned=never, previous=before)
        view = View(
            step=step, steps=steps, count=torch.tensor(count, device=masked.device), start=torch.zeros_like(steps),
            masked=masked, window=window, mask_id=backbone.mask_id, slots=canvas.slots, open=canvas.open,
            keys=canvas.keys, lengths=lengths, predictions=before,
        )  # fmt: skip
        choice = select(view)
        check_choice(choice, view)
        window = torch.where(choice.reveal, pick(view, choice.reveal), window)
        if choice.hide is not None:
            window = torch.where(choice.hide, backbone.mask_id, window)
        yield Step(view, choice, window, tuple(forwards))
        before.forget()


@dataclass(frozen=True, eq=False)
class Decoded:
    """A finished decode."""

    tokens: Int[Tensor, "B S"]
    window: Int[Tensor, "B L"]
    forwards: tuple[int, ...]


def decode(
    backbone: Backbone,
    canvas: Canvas,
    *,
    counts: Counts | Sequence[Counts],
    select: Select,
    pick: Pick = greedy,
    banned: Sequence[int] | None = None,
    fused: bool = False,
) -> Decoded:
    """Run `decode_steps` to its end.

    >>> from unmask import Canvas, OPEN, ToyBackbone, decode, linear_counts, top_by, top1_probability
    >>> toy, canvas = ToyBackbone(), Canvas.of([[OPEN] * 96])
    >>> done = decode(toy, canvas, counts=linear_counts(96, 24), select=top_by(top1_probability))
    >>> toy.spell(done.window[0])
    'First write what you know best; leave the end for the end, and the rest'
    """
    steps = decode_steps(backbone, canvas, counts=counts, select=select, pick=pick, banned=banned, fused=fused)
    last = deque(steps, maxlen=1).pop()
    return Decoded(canvas.filled(last.window), last.window, last.forwards)


def encode(
    backbone: Backbone, canvas: Canvas, window: Int[Tensor, "B L"], active: Sequence[bool], *, fused: bool = False
) -> Float[Tensor, "B L D"]:
    """States of the open slots in the active rows, zero elsewhere.

    Each row is encoded by itself, without padding, so that its numbers cannot depend on its neighbours: the bits of a
    matrix product depend on its number of rows. Rows with equal canvases (the samples of a prompt at step 1) share one
    pass.
    """
    tokens = canvas.filled(window)
    if fused:
        return backbone.encode(tokens, canvas.lengths, canvas.slots) * canvas.open[..., None]
    states: Tensor | None = None
    seen: dict[tuple[bytes, bytes], Tensor] = {}
    for row, (length, holes) in enumerate(zip(canvas.lengths, canvas.holes, strict=True)):
        if not active[row]:
            continue
        line, slots = tokens[row : row + 1, :length], canvas.slots[row : row + 1, :holes]
        key = (line.cpu().numpy().tobytes(), slots.cpu().numpy().tobytes())
        if key not in seen:
            seen[key] = backbone.encode(line, [length], padded(slots[0])[None])[0, :holes]
        if states is None:
            states = seen[key].new_zeros(*window.shape, seen[key].shape[-1])
        states[row, :holes] = seen[key]
    assert states is not None, "encode needs at least one active row"
    return states


def check_canvas(backbone: Backbone, canvas: Canvas) -> None:
    """Refuse tokens and lengths that the backbone cannot take."""
    if max(canvas.lengths) > backbone.context:
        raise InputError(f"a row has {max(canvas.lengths)} positions but the model takes {backbone.context}; shorten it")
    highest = int(canvas.tokens.max())
    if highest >= backbone.vocab_size:
        raise InputError(
            f"token {highest} is not in the model's vocabulary of {backbone.vocab_size}; was another tokenizer used?"
        )


def check_choice(choice: Choice, view: View) -> None:
    """Hold a rule to its promise: only masked slots, and as many as the step asks for."""
    short = (choice.reveal.sum(1) < view.count).nonzero()[:, 0]
    if len(short):
        row = int(short[0])
        raise RuleError(
            f"the rule revealed {int(choice.reveal[row].sum())} slots in row {row} at step {view.step}, "
            f"but the step asks for at least {int(view.count[row])}; reveal that many of view.masked"
        )
    revealed: Bool[Tensor, "B L"] = choice.reveal & ~view.masked
    if choice.hide is not None:
        revealed = revealed | (choice.hide & (~view.open | choice.reveal))
    if revealed.any():
        row, slot = (int(index) for index in revealed.nonzero()[0])
        raise RuleError(
            f"the rule revealed or hid slot {slot} of row {row} at step {view.step}, which it may not; "
            "reveal only view.masked, and hide only slots that are revealed"
        )


def _counts_of_rows(counts: Counts | Sequence[Counts], canvas: Canvas) -> list[Counts]:
    """One checked sequence of counts a row."""
    each = [tuple(int(count) for count in row) for row in counts if isinstance(row, Sequence)]
    whole = tuple(int(count) for count in counts if not isinstance(count, Sequence))
    if whole and each:
        raise InputError("counts must be one sequence of integers for all rows, or one sequence for each row, not both")
    rows = each or [whole] * len(canvas.lengths)
    if len(rows) != len(canvas.lengths):
        raise InputError(f"counts for {len(rows)} rows, but the canvas has {len(canvas.lengths)}")
    for row, holes in zip(rows, canvas.holes, strict=True):
        check_counts(row, holes)
    return rows
