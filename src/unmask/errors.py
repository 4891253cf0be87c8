"""What can go wrong, as one tree.

UnmaskError
├── InputError (ValueError)         a value the caller can change: says the value, the limit and the fix
│   ├── CheckpointError             a model folder or one of its files is not what it should be
│   └── RecordError                 a record file is not what it should be
├── RuleError (RuntimeError)        a selection rule broke its contract
└── MemoryLimitError (MemoryError)  a decode did not fit; says what would
"""

import difflib
from collections.abc import Iterable


class UnmaskError(Exception):
    """The root: catch this to catch every error that unmask raises on purpose."""


class InputError(UnmaskError, ValueError):
    """A value that the caller can change."""


class CheckpointError(InputError):
    """A model folder, or a file in it, cannot be used."""


class RecordError(InputError):
    """A record file cannot be used."""


class RuleError(UnmaskError, RuntimeError):
    """A selection rule did not keep its promise to the loop."""


class MemoryLimitError(UnmaskError, MemoryError):
    """A decode did not fit into memory."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not in a table, with the nearest names first.

    >>> print(unknown("order", "margins", ["top1", "margin"]))
    unknown order 'margins'; did you mean 'margin'? known: margin, top1
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return InputError(f"unknown {kind} {name!r}{hint} known: {', '.join(names)}")
