"""The canvas as it fills in, for a terminal: each token in the colour of the step that revealed it."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text as Line

from unmask.frames import END, MASK, Frame

# dark blue to yellow by way of teal, told apart in grey and by colour-blind eyes (after viridis)
COLOURS = ["#5468b8", "#3f7fc4", "#2b94bf", "#1fa8a9", "#35b779", "#7ac74f", "#b9d13a", "#fde725"]


def piece(text: str) -> str:
    """A token as it can stand in a line."""
    shown = {"\n": "⏎", "\r": "", "\t": "→"}
    return "".join(char if char.isprintable() else shown.get(char, "�") for char in text)


def painted(
    pieces: Sequence[str], steps: Sequence[int | None], last: int, *, fresh: int | None = None, breaks: bool = False
) -> Line:
    """Tokens coloured by the step of their reveal, those of step `fresh` reversed; masks and ends dim.

    All on one line, unless `breaks` lets line breaks be what they are.
    """
    line = Line()
    shown = ("\n".join(map(piece, text.split("\n"))) if breaks else piece(text) for text in pieces)
    styled = ((text, _style(text, step, last, fresh)) for text, step in zip(shown, steps, strict=True))
    for style, run in groupby(styled, key=lambda pair: pair[1]):
        line.append("".join(text for text, _ in run), style=style)
    return line


def _style(text: str, step: int | None, last: int, fresh: int | None) -> str:
    if text in (MASK, END):
        return "bold" if step is not None and step == fresh else "dim"
    if step is None:
        return ""
    colour = COLOURS[min(len(COLOURS) - 1, (step - 1) * len(COLOURS) // max(1, last))]
    return f"{colour} reverse" if step == fresh else colour


class Ticker:
    """Progress of a job on stderr: a line that is rewritten on a terminal, a line every few seconds elsewhere."""

    def __init__(self, rows: int, *, every: float = 10.0) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.rows, self.every, self.last = rows, every, time.monotonic()

    def tick(self, done: int, step: int, steps: int) -> None:
        """Say where the job is, if it is time to."""
        now = time.monotonic()
        if now - self.last < (0.1 if self.console.is_terminal else self.every):
            return
        self.last = now
        end = "\r" if self.console.is_terminal else "\n"
        self.console.print(f"{done}/{self.rows} rows done, step {step} of at most {steps}", end=end)

    def clear(self) -> None:
        """Take the line away."""
        if self.console.is_terminal:
            self.console.file.write("\r\x1b[K")


class Watch(AbstractContextManager["Watch"]):
    """An animated view on a terminal; a line a step elsewhere."""

    def __init__(self, *, console: Console | None = None, every: int = 1) -> None:
        self.every = every
        self.console = console or Console(stderr=True, highlight=False)
        self.live = Live(console=self.console, refresh_per_second=30, transient=False) if self.console.is_terminal else None

    def __enter__(self) -> "Watch":
        if self.live is not None:
            self.live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.live is not None:
            self.live.__exit__(kind, error, trace)

    def show(self, frame: Frame, last: int) -> None:
        """Draw the canvas after a step of at most `last`."""
        if self.live is not None:
            unbroken = [text.replace(" ", "\u00a0") for text in frame.pieces]  # lines break anywhere, so that nothing jumps
            body = painted(unbroken, frame.revealed_at, last, fresh=frame.step)
            self.live.update(Line().append(f"step {frame.step}/{last}\n", style="bold").append_text(body), refresh=True)
        elif frame.step % self.every == 0 or frame.step in (1, last):
            text = "".join(piece(part) for part in frame.pieces)
            self.console.print(f"step {frame.step:>{len(str(last))}}/{last}  {text}", markup=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """A length of time, for people.

    >>> duration(42), duration(150), duration(8000)
    ('42 s', '2.5 min', '2.2 h')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
