"""The published tests' fingerprints, so that no generator makes one of their problems; the problems themselves are not here.

`python -m unmask.tasks.published NAME=FILE...` writes them anew from the published files.
"""

import json
import sys
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from unmask.files import whole
from unmask.tasks import countdown
from unmask.tasks.problem import Problem, fingerprint
from unmask.tasks.sources import read_countdown, read_sudoku

FILE = "published.json"
READERS = {"countdown": read_countdown, "sudoku": read_sudoku}


@cache
def fingerprints(family: str) -> frozenset[int]:
    """The fingerprints of a family's published test problems; none if no test of that kind is published."""
    stored = json.loads((files("unmask.tasks") / FILE).read_text(encoding="utf-8"))
    return frozenset(stored.get(family, ()))


def of(family: str, problem: Problem) -> int:
    """A problem's fingerprint, as its generator would have it."""
    facts = problem.facts
    key = facts["puzzle"] if family == "sudoku" else countdown.key(facts["numbers"], facts["target"])
    return fingerprint(f"{family}:{key}")


def main(arguments: Sequence[str]) -> None:
    """Read the files and write the fingerprints beside this module."""
    found: dict[str, set[int]] = {family: set() for family in READERS}
    for argument in arguments:
        family, _, path = argument.partition("=")
        found[family] |= {of(family, problem) for problem in READERS[family](Path(path))}
    with whole(Path(__file__).with_name(FILE)) as part:
        part.write_text(json.dumps({family: sorted(prints) for family, prints in found.items()}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
