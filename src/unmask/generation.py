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
    """The answer up to its end token; for a template, all of it with its holes filled."""
    tokens: list[int]
    """Every token of the window, the end tokens included."""
    finish: Literal["eos", "length"]
    effective_tokens: int
    """Tokens of the window that are not end tokens."""
    nfe: int
    """Backbone passes (number of function evaluations)."""
    seconds: float
    """Wall time of the batch that it was decoded in."""
    holes: list[str]
    """What was written into each run of open slots, up to an end token."""
    prompt_tokens: int
    """Tokens before the window or template."""
    settings: dict[str, Any]
    """As used: the number of open slots as length, the most steps that the decode could take as steps."""
    record: Record | None = None

    @staticmethod
    def of(
        line: Sequence[int], slots: Sequence[int], *, start: int, text: Text, end_ids: Sequence[int], nfe: int,
        seconds: float, settings: dict[str, Any], record: Record | None,
    ) -> "Generation":  # fmt: skip
        """Read out one finished canvas row with these open slots, whose answer begins at `start`."""
        window = [line[slot] for slot in slots]
        runs = _runs(slots)
        holes = [text.decode(_before_end([line[slot] for slot in run], end_ids)) for run in runs]
        parts, place = [], start
        for run, hole in zip(runs, holes, strict=True):
            parts += [text.decode(line[place : run[0]]), hole]
            place = run[-1] + 1
        return Generation(
            text="".join([*parts, text.decode(line[place:])]),
            tokens=window,
            finish="eos" if any(token in end_ids for token in window) else "length",
            effective_tokens=sum(token not in end_ids for token in window),
            nfe=nfe,
            seconds=seconds,
            holes=holes,
            prompt_tokens=start,
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
