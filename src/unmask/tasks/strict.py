"""The correct scorers: exact numbers, exact expressions, every valid grid, and no `eval`."""

import re
from fractions import Fraction

from unmask.tasks import rational, sudoku
from unmask.tasks.extract import answered, final, last_box, tagged

MARKS = re.compile(r"[\s|,;\[\]`*-]+|<\|[a-z_]+\|>")
"""What may stand between the digits of a grid."""


def same_number(text: str, truth: str) -> bool:
    """Whether the completion's final answer states this number."""
    answer = final(text)
    found = None if answer is None else rational.number(answer)
    return found is not None and found == rational.number(truth)


def same_form(text: str, truth: str) -> bool:
    """Whether it states this number, and a fraction in the same terms: 2/4 is not 1/2 simplified."""
    answer = final(text)
    given, wanted = rational.stated(answer or ""), rational.stated(truth)
    if given is None or wanted is None or given[0] != wanted[0]:
        return False
    return not wanted[1] or given[1] == wanted[1]


def reaches(text: str, numbers: tuple[int, ...], target: int) -> bool:
    """Whether the final expression has the target's value and uses each number once.

    >>> reaches(r"<answer>\\boxed{(5 - 1) * 3 = 12}</answer>", (3, 5, 1), 12)
    True
    """
    answer = final(text)
    if answer is None or len(answer) > rational.LONGEST:
        return False
    found = rational.value(answer.partition("=")[0].strip(" ."))
    return found is not None and sorted(found[1]) == sorted(numbers) and found[0] == Fraction(target)


def cells(text: str, puzzle: str) -> tuple[int, int]:
    """Right cells among the empty ones, and how many were empty; any valid grid is right in all of them.

    A grid is 16 digits; with fewer or more of them it is not known which cell is meant, and none counts.
    """
    empty = [place for place, digit in enumerate(puzzle) if digit == sudoku.BLANK]
    grid = read_grid(text)
    if grid is None:
        return 0, len(empty)
    right = (sum(grid[place] == solution[place] for place in empty) for solution in sudoku.solutions(puzzle))
    return max(right, default=0), len(empty)


def solves(text: str, puzzle: str) -> bool:
    """Whether the grid is a solution: valid, and with the puzzle's own clues."""
    return read_grid(text) in sudoku.solutions(puzzle)


def read_grid(text: str) -> str | None:
    """The 16 digits of the answer: in the answer tags, or, if these are not closed, the last 16 that stand by themselves."""
    inside = answered(text)
    if inside is not None and len(inside) <= rational.LONGEST:
        digits = MARKS.sub("", last_box(inside) or inside)
        if re.fullmatch(r"[0-9]{16}", digits):
            return digits
    if tagged(text) is not None:
        return None
    alone = [digits for digits in re.findall("[0-9]{16,}", text) if len(digits) == 16]
    return alone[-1] if alone else None
