"""What a task asks: a problem with its answer and, where we made it ourselves, its worked solution."""

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from unmask.errors import InputError, unknown

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")
STYLES = ("long", "worked", "terse", "direct")
"""How a solution can be written: with everything said, in sentences, as bare arithmetic, or as the answer alone."""
BUCKETS, TEST_BUCKETS = 8, 1
"""A problem's fingerprint says which split it belongs to: one in eight is a test problem."""


@dataclass(frozen=True)
class Problem:
    """One problem of a task."""

    question: str
    answer: str
    """The reference answer, as a scorer of the task takes it."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What a scorer needs beside the answer, such as Countdown's numbers."""
    long: tuple[str, ...] = ()
    """The solution with everything said, line by line; empty for problems from files."""
    worked: tuple[str, ...] = ()
    """The same in short sentences."""
    terse: tuple[str, ...] = ()
    """The same as bare arithmetic."""
    manner: str = ""
    """How it is asked or of whom it tells, where that varies: what an answer's length may hang on."""
    boxed: bool = True
    """The answer is written in a box."""

    def response(self, style: str = "worked") -> str:
        r"""A right response, as it continues a prompt that ends with the opening tag of the reasoning.

        >>> print("<reasoning>" + Problem("What is 1 + 1?", "2", terse=("1 + 1 = 2",)).response("terse"))
        <reasoning>
        1 + 1 = 2
        </reasoning>
        <answer>
        \boxed{2}
        </answer>
        """
        if style not in STYLES:
            raise unknown("style", style, STYLES)
        lines = {"long": self.long, "worked": self.worked, "terse": self.terse, "direct": ()}[style]
        answer = rf"\boxed{{{self.answer}}}" if self.boxed else self.answer
        return "\n".join(["", *lines, "</reasoning>", "<answer>", answer, "</answer>"])


Make = Callable[[random.Random], tuple[str, Problem] | None]
"""make(random): a problem with the key that tells it from others, or None if this draw came to nothing."""


def fingerprint(key: str) -> int:
    """32 bits of a problem's key."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")


def draw(family: str, make: Make, *, index: int, seed: int, split: Split, published: frozenset[int] = frozenset()) -> Problem:
    """Problem `index` of a seed: a function of its arguments alone, so any part of a set can be made by itself.

    A problem whose fingerprint belongs to the other split, or to a published test, is drawn again: the splits and the
    published tests are disjoint whatever the seeds.
    """
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    if not 0 <= seed < 2**63 or index < 0:
        raise InputError(f"seed={seed} and index={index} must be whole numbers of at least 0")
    rng = random.Random(f"{family}/{split}/{seed}/{index}")  # a text is hashed the same way everywhere
    while True:
        made = make(rng)
        if made is None:
            continue
        print_ = fingerprint(f"{family}:{made[0]}")
        in_test = print_ % BUCKETS < TEST_BUCKETS
        if in_test == (split == "test") and print_ not in published:
            return made[1]
