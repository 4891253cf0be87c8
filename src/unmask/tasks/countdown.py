"""Countdown: reach a target from three numbers, each used once, with + - * and /."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, permutations, product
from typing import Any

from unmask.tasks.problem import Problem

SIGNS = "+-*/"
MOST_TRIES = 4
"""A long solution shows no more attempts than these, the last ones."""


@dataclass(frozen=True)
class Level:
    """Which numbers and targets."""

    largest: int
    target: int
    signs: str
    """Only problems that these can solve; + and - are tried before * and /."""


LEVELS = {"easy": Level(15, 45, "+-"), "medium": Level(20, 60, "+-"), "hard": Level(99, 100, "+-*/")}


@dataclass(frozen=True)
class Solution:
    """An expression, and its two sums."""

    expression: str
    sums: tuple[str, str]


def make(rng: random.Random, level: Level) -> tuple[str, Problem] | None:
    """A solvable problem with a solution; its key is the sorted numbers and the target."""
    numbers = [rng.randint(1, level.largest) for _ in range(3)]
    sign, other = rng.choice(level.signs + "+-"), rng.choice(level.signs + "+-")
    made = [solution for solution in solutions(numbers, (sign,), (other,)) if 1 <= solution[0] <= level.target]
    if not made:
        return None
    target = rng.choice(made)[0]
    if target in numbers:
        return None
    best = solve(numbers, target, level.signs)
    assert best is not None, "the target was made from the numbers"
    first, second = best.sums
    worked = (f"First take {first}.", f"With the last number {second}.", f"This reaches the target {target}.")
    tried = [f"Try {expression} = {value}." for value, expression in attempts(numbers, target, level.signs)]
    problem = Problem(
        question(numbers, target), best.expression, {"numbers": tuple(numbers), "target": target},
        long=(*tried[-MOST_TRIES:-1], f"{tried[-1][:-1]}, the target.", *best.sums), worked=worked, terse=best.sums,
    )  # fmt: skip
    return key(numbers, target), problem


def question(numbers: Sequence[int], target: int) -> str:
    """The question, as d1 writes it."""
    return f"Numbers: {list(numbers)}\nTarget: {target}"


def facts(numbers: Any, target: Any) -> dict[str, Any]:
    """What the scorers need; raises TypeError for what came out of a file and is no problem.

    >>> facts([3, 10, 2], 32)
    {'numbers': (3, 10, 2), 'target': 32}
    """
    if not isinstance(numbers, list | tuple) or not numbers or not all(type(number) is int for number in (*numbers, target)):
        raise TypeError("numbers and target must be whole numbers")
    return {"numbers": tuple(numbers), "target": target}


def key(numbers: Sequence[int], target: int) -> str:
    """What makes two problems the same."""
    return f"{sorted(numbers)} {target}"


def solve(numbers: Sequence[int], target: int, signs: str = SIGNS) -> Solution | None:
    """The simplest way to the target, if there is one: without brackets if possible, earlier signs first, then the order given.

    There are no fractions and nothing below zero on the way.

    >>> solve([3, 10, 2], 32).expression
    '3 * 10 + 2'
    """
    found = [solution for value, solution in _in_order(numbers, signs) if value == target]
    return min(found, key=lambda solution: "(" in solution.expression, default=None)


def attempts(numbers: Sequence[int], target: int, signs: str = SIGNS) -> list[tuple[int, str]]:
    """What can be made of the numbers, in the order of `solve`, each value once, up to the target.

    >>> attempts([3, 10, 2], 5, "+-")
    [(15, '3 + 10 + 2'), (11, '3 + 10 - 2'), (9, '10 + 2 - 3'), (5, '10 - 3 - 2')]
    """
    best = solve(numbers, target, signs)
    assert best is not None, "only problems with a solution are worked out"
    tried: dict[int, str] = {}
    for value, solution in _in_order(numbers, signs):
        if value != target and "(" not in solution.expression:
            tried.setdefault(value, solution.expression)
        if solution.expression == best.expression:
            break
    return [*tried.items(), (target, best.expression)]


def _in_order(numbers: Sequence[int], signs: str) -> Iterator[tuple[int, Solution]]:
    """Everything that can be made, pairs of earlier signs first."""
    pairs = sorted(product(signs, signs), key=lambda pair: (sum(map(signs.index, pair)), signs.index(pair[0])))
    return chain.from_iterable(solutions(numbers, (first,), (second,)) for first, second in pairs)


def solutions(numbers: Sequence[int], firsts: Sequence[str], seconds: Sequence[str]) -> Iterator[tuple[int, Solution]]:
    """Every way to combine two of the numbers by one of `firsts` and the result with the third by one of `seconds`."""
    for i, j, k in permutations(range(3)):
        a, b, c = numbers[i], numbers[j], numbers[k]
        for first in firsts:
            inner = apply(a, first, b)
            if inner is None or (first in "+*" and i > j):
                continue
            for second in seconds:
                for flipped in (False, True):
                    if flipped and second in "+*":
                        continue
                    left, right = (c, inner) if flipped else (inner, c)
                    value = apply(left, second, right)
                    if value is None:
                        continue
                    yield (
                        value,
                        Solution(
                            _expression(f"{a} {first} {b}", first, second, str(c), flipped=flipped),
                            (f"{a} {first} {b} = {inner}", f"{left} {second} {right} = {value}"),
                        ),
                    )


def apply(a: int, sign: str, b: int) -> int | None:
    """A whole result of at least zero, or None."""
    if sign == "/":
        return a // b if b and a % b == 0 else None
    value = a + b if sign == "+" else a - b if sign == "-" else a * b
    return value if value >= 0 else None


def _expression(inner: str, first: str, second: str, other: str, *, flipped: bool) -> str:
    needs = (first in "+-" and (second in "*/" or (flipped and second == "-"))) or (flipped and second == "/")
    inner = f"({inner})" if needs else inner
    return f"{other} {second} {inner}" if flipped else f"{inner} {second} {other}"
