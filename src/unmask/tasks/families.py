"""The families of problems that we make ourselves, by name."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from unmask.errors import unknown
from unmask.tasks import algebra, countdown, sudoku, sums, words
from unmask.tasks.problem import Problem, Split, draw
from unmask.tasks.published import fingerprints

LEVELS = ("easy", "medium", "hard")


@dataclass(frozen=True)
class Family:
    """Problems without end, of one kind, at several levels."""

    make: Callable[[random.Random, Any], tuple[str, Problem] | None]
    levels: Mapping[str, Any]


FAMILIES: dict[str, Family] = {
    module.__name__.rpartition(".")[2]: Family(module.make, module.LEVELS)
    for module in (words, algebra, countdown, sudoku, sums)
}


def sample(family: str, index: int, *, level: str = "easy", split: Split = "test", seed: int = 0) -> Problem:
    """Problem `index` of a family: the same wherever and whenever it is asked for, and in one split only.

    >>> sample("sudoku", 0).question == sample("sudoku", 0).question
    True
    """
    if family not in FAMILIES:
        raise unknown("family", family, FAMILIES)
    levels = FAMILIES[family].levels
    if level not in levels:
        raise unknown("level", level, levels)
    make = partial(_call, FAMILIES[family].make, levels[level])
    return draw(family, make, index=index, seed=seed, split=split, published=fingerprints(family))


def _call(make: Callable[..., tuple[str, Problem] | None], level: Any, rng: random.Random) -> tuple[str, Problem] | None:
    return make(rng, level)
