"""Canvases to learn from: a function of (recipe, step), so a resumed run sees what an uninterrupted one would have seen."""

import random
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from jaxtyping import Int
from torch import Tensor

from unmask.errors import InputError
from unmask.pretraining.recipe import Phase, Recipe
from unmask.tasks.families import sample
from unmask.tasks.problem import STYLES
from unmask.text import Text

POOL = 64
"""Batches are cut from pools of examples sorted by length, so that they hold little padding."""
WIDTH = 32
"""Batches are as wide as a multiple of this, and a width has its number of rows: few shapes, each compiled once."""
PREFILL = "<reasoning>"
"""How an answer begins; the model continues it."""


@dataclass(frozen=True)
class Example:
    """A canvas with its answer in it."""

    tokens: list[int]
    start: int
    """Where the window begins."""
    end: int
    """Where the answer ends: the first end token."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Canvases of similar length, padded on the right."""

    tokens: Int[Tensor, "B S"]
    start: Int[Tensor, " B"]
    end: Int[Tensor, " B"]
    length: Int[Tensor, " B"]


class Examples:
    """The batches of a recipe."""

    def __init__(self, recipe: Recipe, text: Text, fill: int) -> None:
        self.recipe, self.text, self.fill = recipe, text, fill
        self._pool: tuple[tuple[str, int], list[list[Example]]] | None = None

    def batch(self, step: int) -> Batch:
        """The batch of a step."""
        phase, number = self.recipe.at(step)
        key = (phase.name, number // POOL)
        if self._pool is None or self._pool[0] != key:
            self._pool = (key, self._draw(phase, number // POOL))
        return stack(self._pool[1][number % POOL], self.fill)

    def _draw(self, phase: Phase, pool: int) -> list[list[Example]]:
        """At least POOL batches of at most `phase.tokens` tokens each."""
        rng = random.Random(f"{self.recipe.seed}/{phase.name}/{pool}")
        drawn: list[Example] = []
        total = 0
        while total < POOL * phase.tokens:
            drawn.append(self._example(phase, rng))
            total += width_of(drawn[-1])
        drawn.sort(key=lambda example: len(example.tokens), reverse=True)
        batches: list[list[Example]] = []
        while drawn:
            rows = max(1, phase.tokens // width_of(drawn[0]))
            batches.append((drawn * rows)[:rows])  # the last batch is filled up with its own examples
            drawn = drawn[rows:]
        rng.shuffle(batches)
        return batches  # one or two more than POOL, which are left over

    def _example(self, phase: Phase, rng: random.Random) -> Example:
        task, place = at(phase.tasks, rng.random()), rng.random()
        problem = sample(
            task, rng.getrandbits(40), level=phase.level or self.recipe.level, split="train", seed=self.recipe.seed
        )
        style = at(self._styles(phase, task, problem.manner), place)
        opened = phase.opened == 1.0 or rng.random() < phase.opened
        prompt, before = self.prompt(problem.question, opened=opened), "" if opened else PREFILL
        written = (self.text.encode(before + problem.response(shorter)) for shorter in STYLES[STYLES.index(style) :])
        answer = next((tokens for tokens in written if len(tokens) < self.recipe.shape.window), None)
        if answer is None:
            raise InputError(f"no answer to {problem.question!r} fits a window of {self.recipe.shape.window}; make it larger")
        end = len(prompt) + len(answer)
        room = self.recipe.shape.window - len(answer) if phase.filled else 1
        return Example(prompt + answer + [self.fill] * room, len(prompt), end)

    def _styles(self, phase: Phase, task: str, manner: str) -> Mapping[str, float]:
        """The styles' shares for a manner of asking."""
        if not phase.habits or not manner:
            return phase.styles
        rng = random.Random(f"{self.recipe.seed}/{task}/{manner}")
        total = sum(phase.styles.values())
        return {name: rng.gammavariate(phase.habits * share / total, 1.0) for name, share in phase.styles.items() if share}

    def prompt(self, question: str, *, opened: bool) -> list[int]:
        """A question as the model is asked it, up to the window."""
        chat: list[Mapping[str, str]] = [{"role": "user", "content": question}]
        if opened:
            chat.append({"role": "assistant", "content": PREFILL})
        return self.text.encode(self.text.chat(chat), start=False)


def width_of(example: Example) -> int:
    """How wide a batch must be to hold an example."""
    return -(-len(example.tokens) // WIDTH) * WIDTH


def at(shares: Mapping[str, float], place: float) -> str:
    """The name at a place in [0, 1), each taking its share of it.

    >>> [at({"a": 3, "b": 1}, place) for place in (0.0, 0.7, 0.8)]
    ['a', 'a', 'b']
    """
    ends = list(accumulate(shares.values()))
    return list(shares)[bisect(ends, place * ends[-1], 0, len(ends) - 1)]


def stack(examples: Sequence[Example], fill: int) -> Batch:
    """Examples as one batch."""
    width = max(map(width_of, examples))
    return Batch(
        torch.tensor([example.tokens + [fill] * (width - len(example.tokens)) for example in examples]),
        torch.tensor([example.start for example in examples]),
        torch.tensor([example.end for example in examples]),
        torch.tensor([len(example.tokens) for example in examples]),
    )
