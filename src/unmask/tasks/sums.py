"""Bare sums, products and divisions that come out even: what the other families are made of."""

import random
from dataclasses import dataclass

from unmask.tasks.problem import Problem


@dataclass(frozen=True)
class Level:
    """How large the numbers are."""

    total: int
    """The largest sum, and the largest number to take away from."""
    term: int
    """The largest number that is added or taken."""
    factor: int
    """The largest number to multiply with or divide by."""
    times: int
    """The largest number that is multiplied, or comes out of a division."""


LEVELS = {"easy": Level(50, 20, 9, 12), "medium": Level(99, 50, 9, 18), "hard": Level(999, 999, 30, 50)}


def make(rng: random.Random, level: Level) -> tuple[str, Problem] | None:
    """One sum; its key is the question, so that a sum that is asked for in a test may stand in a longer training problem."""
    sign = rng.choice("+-**//")
    if sign in "*/":
        b, a = rng.randint(2, level.factor), rng.randint(1, level.times)
        left, right, result = (a, b, a * b) if sign == "*" else (a * b, b, a)
        if sign == "*" and rng.random() < 0.5:
            left, right = right, left
    else:
        left, right = rng.randint(1, level.total), rng.randint(1, level.term)
        result = left + right if sign == "+" else left - right
        if not 0 <= result <= level.total:
            return None
    asked = f"{left} {sign} {right}"
    question = rng.choice((f"What is {asked}?", f"Find {asked}.", f"Work out {asked}.", f"How much is {asked}?"))
    done = f"{asked} = {result}"
    long = (f"The question is about {asked}.", f"This is {done}.", f"So the answer is {result}.")
    return question, Problem(question, str(result), long=long, worked=(f"This is {done}.",), terse=(done,))
