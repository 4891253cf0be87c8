"""What a prompt became."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unmask.record import Record
from unmask.text import Text


@dataclass(frozen=True, eq=False)
class Generation:
    """What a prompt became."""

    text: str
    """The answer, up to its end token; for a template, the whole of it with its holes filled."""
    tokens: list[int]
    """Every token of the window, the end tokens included."""
    finish: Literal["eos", "length"]
    effective_tokens: int
    """Tokens of the window that are not end tokens."""
    nfe: int
    """Backbone passes (number of function evaluations)."""
    seconds: float
    """Wall time of the batch it was decoded in."""
    holes: list[str]
    """What was written into each run of open slots."""
    prompt_tokens: int
    settings: dict[str, Any]
    record: Record | None = None

    @staticmethod
    def of(
        line: Sequence[int], slots: Sequence[int], *, text: Text, end_ids: Sequence[int], nfe: int, seconds: float,
        settings: dict[str, Any], record: Record | None,
    ) -> "Generation":  # fmt: skip
        """Read out one finished canvas row with these open slots."""
        window = [line[slot] for slot in slots]
        at_the_end = list(range(slots[0], len(line))) == list(slots)  # the canvas ends with one window
        kept = _before_end(window, end_ids) if at_the_end else [token for token in line if token not in end_ids]
        return Generation(
            text=text.decode(kept),
            tokens=window,
            finish="eos" if any(token in end_ids for token in window) else "length",
            effective_tokens=sum(token not in end_ids for token in window),
            nfe=nfe,
            seconds=seconds,
            holes=[text.decode(_before_end([line[slot] for slot in run], end_ids)) for run in _runs(slots)],
            prompt_tokens=len(line) - len(slots),
            settings=settings,
            record=record,
        )


def _before_end(tokens: list[int], end_ids: Sequence[int]) -> list[int]:
    for index, token in enumerate(tokens):
        if token in end_ids:
            return tokens[:index]
    return tokens


def _runs(slots: Sequence[int]) -> list[list[int]]:
    """Neighbouring slots together."""
    runs: list[list[int]] = []
    for slot in slots:
        if runs and runs[-1][-1] == slot - 1:
            runs[-1].append(slot)
        else:
            runs.append([slot])
    return runs
