"""Frames: the canvas after each step as pieces of text, from a running decode or from a record; for whoever draws them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from unmask.record import Record
from unmask.text import Text

MASK, END = "░", "·"


@dataclass(frozen=True)
class Frame:
    """What there is to see after a step."""

    step: int
    pieces: list[str]
    """Text of each position from the first shown one on; MASK for an open slot, END for an end token."""
    revealed_at: list[int | None]
    """The step that revealed it; None for fixed text and open slots."""


def frames(
    changes: Iterable[tuple[int, dict[int, int]]], start: Sequence[int], *, first: int, text: Text, mask_id: int,
    end_ids: Sequence[int],
) -> Iterator[Frame]:  # fmt: skip
    """A frame for each (step, {position: token}) of one row, from its canvas `start`, showing positions from `first` on."""
    tokens = list(start)
    revealed: list[int | None] = [None] * len(tokens)
    known: dict[int, str] = {mask_id: MASK, **dict.fromkeys(end_ids, END)}
    for step, changed in changes:
        for position, token in changed.items():
            tokens[position] = token
            revealed[position] = None if token == mask_id else step
        for token in set(tokens) - set(known):
            known[token] = text.decode([token], keep_special=True)
        yield Frame(step, [known[token] for token in tokens[first:]], revealed[first:])


def frames_of(record: Record, text: Text, end_ids: Sequence[int]) -> Iterator[Frame]:
    """The frames of a record's first row: a canvas that ends in one window from its first slot on, a template as a whole."""
    columns, start = record.columns, record.canvas(0)[0]
    slots = [int(slot) for slot in columns["slots"][: int(columns["holes"][0])]]
    changes = (
        (step, {int(columns["position"][at]): int(columns["token"][at]) for at in events})
        for step in sorted({int(step) for step in columns["step"][columns["row"] == 0]})
        if len(events := ((columns["row"] == 0) & (columns["step"] == step)).nonzero()[0])
    )
    first = slots[0] if list(range(slots[0], len(start))) == slots else 0
    yield from frames(changes, start, first=first, text=text, mask_id=record.mask_id, end_ids=end_ids)
