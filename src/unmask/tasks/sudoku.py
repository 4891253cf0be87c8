"""Sudoku 4x4: fill the blanks so that every row, column and 2x2 box holds 1 to 4."""

import random
import re
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Any

from unmask.tasks.problem import Problem

BLANK = "0"


@dataclass(frozen=True)
class Level:
    """How many blanks, at least and at most."""

    blanks: tuple[int, int]


LEVELS = {"easy": Level((4, 7)), "medium": Level((4, 8)), "hard": Level((8, 12))}


@cache
def grids() -> tuple[str, ...]:
    """All 288 grids, in order.

    >>> len(grids()), grids()[0]
    (288, '1234341221434321')
    """
    rows = ["".join(row) for row in permutations("1234")]
    found = []
    for a in rows:
        for b in rows:
            if _box_clash(a, b):
                continue
            for c in rows:
                for d in rows:
                    if not _box_clash(c, d) and all(len(set(column)) == 4 for column in zip(a, b, c, d, strict=True)):
                        found.append(a + b + c + d)
    return tuple(found)


def _box_clash(upper: str, lower: str) -> bool:
    return bool(set(upper[:2]) & set(lower[:2]) or set(upper[2:]) & set(lower[2:]))


def solutions(puzzle: str) -> list[str]:
    """Every grid that agrees with the puzzle's clues."""
    clues = [(place, digit) for place, digit in enumerate(puzzle) if digit != BLANK]
    return [grid for grid in grids() if all(grid[place] == digit for place, digit in clues)]


def facts(puzzle: Any, solution: Any) -> dict[str, str]:
    """What the scorers need; raises ValueError for what came out of a file and is no puzzle with a solution of it.

    >>> facts("1234341221434320", "1234341221434321")
    {'puzzle': '1234341221434320'}
    """
    if not re.fullmatch("[0-4]{16}", puzzle) or solution not in solutions(puzzle):
        raise ValueError(f"{solution!r} does not solve {puzzle!r}")
    return {"puzzle": puzzle}


def make(rng: random.Random, level: Level) -> tuple[str, Problem] | None:
    """A puzzle with one solution; its key is the puzzle."""
    grid = rng.choice(grids())
    wanted, blanks = rng.randint(*level.blanks), 0
    cells, left = list(grid), [other for other in grids() if other != grid]
    order = rng.sample(range(16), 16)
    kept: list[int] = []
    # clues are added until only one grid is left, and then until there are few enough blanks
    for place in order:
        if not left and 16 - len(kept) <= wanted:
            break
        kept.append(place)
        left = [other for other in left if other[place] == grid[place]]
    cells = [grid[place] if place in kept else BLANK for place in range(16)]
    blanks = cells.count(BLANK)
    if not level.blanks[0] <= blanks <= level.blanks[1]:
        return None
    puzzle = "".join(cells)
    rows = [grid[start : start + 4] for start in range(0, 16, 4)]
    worked = tuple(f"Row {number} is {row}." for number, row in enumerate(rows, start=1))
    given = [puzzle[start : start + 4] for start in range(0, 16, 4)]
    long = tuple(
        f"Row {number} was {old} and is {row}." for number, (old, row) in enumerate(zip(given, rows, strict=True), start=1)
    )
    return puzzle, Problem(question(puzzle), grid, {"puzzle": puzzle}, long=long, worked=worked, terse=tuple(rows), boxed=False)


def question(puzzle: str) -> str:
    """The question, as d1 writes it."""
    return f"Solve the following Sudoku puzzle: {puzzle}\n"
