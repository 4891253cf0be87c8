"""Files that are written whole or not at all."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unmask.errors import InputError


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place, flushed to disk, if the block ends without an error.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with whole(target) as part: _ = part.write_text("all of it")
    >>> target.read_text()
    'all of it'
    """
    path = Path(path)
    check_target(path)
    path = path.resolve()  # a link stays a link, and its target is written
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def check_target(path: Path) -> None:
    """Refuse a path that cannot become a file, before work is done for it."""
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder; give the name of a file in it")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} cannot be written: it is a device or a pipe; give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path} cannot be written: the folder {path.parent} is not writable; choose another")


def json_lines(path: Path, text: str) -> list[Any]:
    """The values in a text with one JSON value a line; a line that is none is refused by its number."""
    values = []
    for number, line in enumerate(text.split("\n"), start=1):  # in a JSON text, other line ends may stand unescaped
        if line.strip():
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path} line {number} is not JSON ({error})") from None
    return values


def _umask() -> int:
    """The process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
