"""Small problems about numbers and unknowns, which stand for MATH where a model is too small for it."""

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from unmask.tasks.problem import Problem


@dataclass(frozen=True)
class Level:
    """How large the numbers are."""

    factor: int
    """The largest factor."""
    unknown: int
    """The largest value of an unknown."""
    term: int
    """The largest number that is added or taken."""


LEVELS = {"easy": Level(5, 9, 10), "medium": Level(6, 9, 20), "hard": Level(20, 50, 500)}


def make(rng: random.Random, level: Level) -> tuple[str, Problem] | None:
    """One problem of one kind; its key is the question's numbers."""
    made = rng.choice(KINDS)(rng, level)
    if made is None:
        return None
    key, problem = made
    long = (f"The question is about {key}.", *problem.worked, f"So the answer is {problem.answer}.")
    return key, replace(problem, long=long, manner=re.sub(r"[0-9]+", "", problem.question))


def _linear(rng: random.Random, level: Level) -> tuple[str, Problem]:
    a, x, b = rng.randint(2, level.factor), rng.randint(1, level.unknown), rng.randint(1, level.term)
    plus = rng.random() < 0.5 or a * x <= b
    c = a * x + b if plus else a * x - b
    sign, back = ("+", "-") if plus else ("-", "+")
    equation = f"{a}x {sign} {b} = {c}"
    first, second = f"{a}x = {c} {back} {b} = {a * x}", f"x = {a * x} / {a} = {x}"
    worked = (f"Move {b} to the right: {first}.", f"Divide by {a}: {second}.")
    return equation, Problem(_solve(rng, equation), str(x), worked=worked, terse=(first, second))


def _bracket(rng: random.Random, level: Level) -> tuple[str, Problem]:
    a, x, b = rng.randint(2, level.factor), rng.randint(1, level.unknown), rng.randint(1, level.unknown)
    equation = f"{a}(x + {b}) = {a * (x + b)}"
    first, second = f"x + {b} = {a * (x + b)} / {a} = {x + b}", f"x = {x + b} - {b} = {x}"
    worked = (f"Divide by {a}: {first}.", f"Take {b} away: {second}.")
    return equation, Problem(_solve(rng, equation), str(x), worked=worked, terse=(first, second))


def _solve(rng: random.Random, equation: str) -> str:
    return rng.choice((f"Solve for x: {equation}", f"What is x if {equation}?", f"Find x such that {equation}."))


def _value(rng: random.Random, level: Level) -> tuple[str, Problem]:
    a, x, b = rng.randint(2, level.factor), rng.randint(2, level.unknown), rng.randint(1, level.term)
    plus = rng.random() < 0.5 or a * x < b
    sign, value = ("+", a * x + b) if plus else ("-", a * x - b)
    expression = f"{a}x {sign} {b}"
    first, second = f"{a} * {x} = {a * x}", f"{a * x} {sign} {b} = {value}"
    question = rng.choice((f"What is {expression} for x = {x}?", f"Let x = {x}. Find {expression}."))
    worked = (f"First multiply: {first}.", f"Then the value is {second}.")
    return f"{expression} at {x}", Problem(question, str(value), worked=worked, terse=(first, second))


def _sequence(rng: random.Random, level: Level) -> tuple[str, Problem]:
    start, gap = rng.randint(1, level.term), rng.randint(2, level.unknown)
    terms = [start + gap * i for i in range(4)]
    if rng.random() < 0.3:
        terms.reverse()
    low, high = min(terms[0], terms[1]), max(terms[0], terms[1])
    rising = terms[1] > terms[0]
    value = terms[3] + gap if rising else terms[3] - gap
    shown = ", ".join(map(str, terms))
    if value < 0:
        value, terms, rising = terms[0] + gap, terms[::-1], True
        shown = ", ".join(map(str, terms))
    first = f"{high} - {low} = {gap}"
    second = f"{terms[3]} {'+' if rising else '-'} {gap} = {value}"
    question = rng.choice((f"What comes next: {shown}?", f"Find the next number of {shown}."))
    worked = (f"The step is {first}.", f"The next number is {second}.")
    return shown, Problem(question, str(value), worked=worked, terse=(first, second))


def _remainder(rng: random.Random, level: Level) -> tuple[str, Problem]:
    b, q = rng.randint(3, level.factor + 3), rng.randint(1, level.unknown)
    r = rng.randint(0, b - 1)
    n = b * q + r
    first, second = f"{b} * {q} = {b * q}", f"{n} - {b * q} = {r}"
    question = rng.choice((f"What is the remainder of {n} divided by {b}?", f"Divide {n} by {b}. What is left over?"))
    worked = (f"The largest multiple is {first}.", f"What is left is {second}.")
    return f"{n} mod {b}", Problem(question, str(r), worked=worked, terse=(first, second))


def _average(rng: random.Random, level: Level) -> tuple[str, Problem]:
    numbers = [rng.randint(1, level.unknown + 6) for _ in range(3)]
    numbers[2] += -sum(numbers) % 3
    a, b, c = numbers
    first, second, third = f"{a} + {b} = {a + b}", f"{a + b} + {c} = {a + b + c}", f"{a + b + c} / 3 = {(a + b + c) // 3}"
    question = rng.choice((f"What is the average of {a}, {b} and {c}?", f"Find the mean of {a}, {b} and {c}."))
    worked = (f"Add two: {first}.", f"Add the third: {second}.", f"Divide by 3: {third}.")
    return f"{a}, {b} and {c}", Problem(question, str((a + b + c) // 3), worked=worked, terse=(first, second, third))


def _part(rng: random.Random, level: Level) -> tuple[str, Problem]:
    b, unit = rng.randint(2, level.factor), rng.randint(2, level.unknown)
    a = rng.randint(1, b - 1)
    first, second = f"{b * unit} / {b} = {unit}", f"{unit} * {a} = {unit * a}"
    question = rng.choice((f"What is {a}/{b} of {b * unit}?", f"Find {a}/{b} of {b * unit}."))
    worked = (f"One part is {first}.", f"So {a} of them are {second}.")
    return f"{a}/{b} of {b * unit}", Problem(question, str(unit * a), worked=worked, terse=(first, second))


def _lowest_terms(rng: random.Random, level: Level) -> tuple[str, Problem] | None:
    b, k = rng.randint(2, level.unknown), rng.randint(2, level.factor)
    a = rng.randint(1, b - 1)
    if math.gcd(a, b) > 1:
        return None
    first, second = f"{a * k} / {k} = {a}", f"{b * k} / {k} = {b}"
    question = rng.choice((f"Simplify {a * k}/{b * k}.", f"Write {a * k}/{b * k} in lowest terms."))
    worked = (f"Both are multiples of {k}.", f"Above {first}.", f"Below {second}.")
    return f"{a * k}/{b * k}", Problem(question, rf"\frac{{{a}}}{{{b}}}", worked=worked, terse=(first, second))


KINDS: Sequence[Callable[[random.Random, Level], tuple[str, Problem] | None]] = (
    _linear, _linear, _bracket, _value, _sequence, _remainder, _average, _part, _lowest_terms
)  # fmt: skip
