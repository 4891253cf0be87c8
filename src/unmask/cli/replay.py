"""unmask replay."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from unmask.errors import InputError


def replay(
    record: Annotated[Path, typer.Argument(help="A file that `unmask generate --record` wrote.")],
    model: Annotated[str | None, typer.Option("--model", "-m", help="Whose tokenizer reads it; default: the record's.")] = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print JSON lines instead: a header, then a line a step.")] = False,
    delay: Annotated[float, typer.Option(help="Seconds between steps on a terminal.")] = 0.08,
) -> None:
    """Play a recorded decode again, or print it as JSON lines.

    Example: unmask replay decode.unmask
    """
    from unmask.cli.show import Watch
    from unmask.frames import frames_of
    from unmask.model import load_text
    from unmask.record import Record

    if not 0 <= delay <= 60:
        raise InputError(f"delay={delay} must lie between 0 and 60 seconds")
    loaded = Record.load(record)
    if jsonl:
        for line in loaded.json_lines():
            print(line)
        return
    name = model or loaded.meta.get("model")
    if not isinstance(name, str):
        raise InputError(f"{record} does not say which model made it; name it with --model")
    try:
        text, end_ids, mask_id = load_text(name)
    except InputError as error:
        raise InputError(f"{error}; or name the model of this record with --model") from None
    if mask_id != loaded.mask_id:
        raise InputError(
            f"{record} was made with mask token {loaded.mask_id}, but {name} has {mask_id}; name its model with --model"
        )
    with Watch() as watch:
        for frame in frames_of(loaded, text, end_ids):
            watch.show(frame, loaded.steps)
            if sys.stderr.isatty():
                time.sleep(delay)
