"""Orders, EOS policies and schedules by name: the only place where a rule's name is looked up.

A rule is written as a name with arguments: `anneal:3`, `klass:0.6,0.015`. A further one is a function, anywhere, and a line in
one of the tables.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from unmask.adaptive import above, by_factor, entropy_bounded, origin, self_planned, stable
from unmask.counts import Schedule, dream_counts, linear_counts, progressive_counts
from unmask.errors import InputError, unknown
from unmask.pick import Pick
from unmask.ranking import ANNEAL_RULES, Rank, eos_annealed, eos_penalized, eos_suppressed, raw
from unmask.scores import (
    Score,
    near_known,
    negative_entropy,
    perturbed,
    position_and_content,
    probability_margin,
    token_frequencies,
    top1_probability,
)
from unmask.selection import Select, top_by, uniform


@dataclass(frozen=True)
class Context:
    """What an order may depend on beside its arguments."""

    rank: Rank
    pick: Pick
    vocab_size: int
    order_temperature: float


@dataclass(frozen=True, kw_only=True)
class Named:
    """One line of a table: what `build` is called with besides a context is in `arguments`."""

    summary: str
    build: Callable[..., Any]
    arguments: Mapping[str, float] | None = None
    """Numbers with their defaults, in the order in which they are written."""
    words: tuple[str, ...] = ()
    """One of these words may be given as well; the first is the default. It is passed as `word`."""
    file: bool = False
    """A path comes first. It is passed as `file`."""

    def usage(self, name: str) -> str:
        """How it is written."""
        parts = ["FILE"] if self.file else []
        parts += [f"{value:g}" for value in (self.arguments or {}).values()]
        parts += ["|".join(self.words)] if self.words else []
        return f"{name}:{','.join(parts)}" if parts else name


@dataclass(frozen=True, kw_only=True)
class Order(Named):
    """An order: `build(context, ...)` makes a Select."""

    adaptive: bool = False
    """It decides itself how many slots to reveal."""
    keeps_own_counts: bool = False
    """It also decides how few, so that no schedule or block can be set."""
    ranked: bool = True
    """An EOS policy acts on it."""
    scored: bool = False
    """It takes the highest score, which an order temperature can perturb."""


def by_score(summary: str, score: Callable[..., Score], **options: Any) -> Order:
    """A line for an order that reveals the highest score; `score(context, ...)` makes the score from the arguments."""

    def build(context: Context, **arguments: Any) -> Select:
        made = score(context, **arguments)
        noisy = perturbed(made, context.order_temperature) if context.order_temperature else made
        return top_by(noisy, rank=context.rank)

    return Order(summary=summary, build=build, scored=True, **options)


def _pc(context: Context, file: str, decay: float, cap: float) -> Score:
    return position_and_content(token_frequencies(read_token_counts(file), context.vocab_size), decay=decay, cap=cap)


def _threshold(context: Context, p: float) -> Select:
    if not 0 <= p <= 1:
        raise InputError(f"threshold={p} must lie between 0 and 1")
    return above(p, rank=context.rank)


ORDERS: Mapping[str, Order] = {
    "top1": by_score("highest probability of the likeliest token", lambda c: top1_probability),
    "margin": by_score("largest gap between the two likeliest tokens", lambda c: probability_margin),
    "entropy": by_score("lowest entropy", lambda c: negative_entropy),
    "conv": by_score(
        "convolutional decoding: top1 near known text",
        lambda c, width, slope: near_known(top1_probability, width=width, slope=slope),
        arguments={"width": 5, "slope": 1.0},
    ),
    "pc": by_score(
        "PC-Sampler: position and rarity, from a file of token counts", _pc, file=True, arguments={"decay": 0.25, "cap": 10.0}
    ),
    "random": Order(summary="uniformly at random (ancestral)", build=lambda c: uniform(), ranked=False),
    "threshold": Order(
        summary="adaptive, Fast-dLLM: all that reach a probability",
        build=_threshold, arguments={"p": 0.9}, adaptive=True,
    ),
    "factor": Order(
        summary="adaptive, Fast-dLLM: the n-th while p >= 1 - f/(n+1)",
        build=lambda c, f: by_factor(f, rank=c.rank), arguments={"f": 1.0}, adaptive=True,
    ),
    "eb": Order(
        summary="adaptive, EB-sampler: a budget of entropy a step",
        build=lambda c, gamma: entropy_bounded(gamma, rank=c.rank), arguments={"gamma": 0.1}, adaptive=True,
    ),
    "klass": Order(
        summary="adaptive, KLASS: sure (p) and no longer moving (kl)",
        build=lambda c, p, kl: stable(p, kl, rank=c.rank), arguments={"p": 0.9, "kl": 0.01}, adaptive=True,
    ),
    "p2": Order(
        summary="P2 self-planning: may mask a token again",
        build=lambda c: self_planned(c.pick), adaptive=True, keeps_own_counts=True, ranked=False,
    ),
    "origin": Order(
        summary="Dream's origin: each slot with probability 1 - s/t",
        build=lambda c: origin(), adaptive=True, keeps_own_counts=True, ranked=False,
    ),
}  # fmt: skip
SAME_ORDER = {"low_confidence": "top1", "maskgit_plus": "top1", "topk_margin": "margin"}
"""What LLaDA's and Dream's programs call our orders."""

EOS: Mapping[str, Named] = {
    "none": Named(summary="rank by the raw predictions", build=lambda: raw),
    "anneal": Named(
        summary="divide the EOS logit by a temperature that falls from this to 1",
        build=lambda start, word: eos_annealed(start=start, rule=word), arguments={"start": 3.0}, words=ANNEAL_RULES,
    ),
    "suppress": Named(summary="rank as if end tokens could not occur", build=eos_suppressed),
    "penalty": Named(
        summary="subtract from the EOS logit, fading with the steps",
        build=eos_penalized, arguments={"penalty": 3.0},
    ),
}  # fmt: skip

SCHEDULES: Mapping[str, Named] = {
    "linear": Named(summary="the same number at every step, the remainder first", build=lambda: linear_counts),
    "progressive": Named(
        summary="few at first, more later: at least floor (0: as fits), growing with step**power",
        build=lambda floor, power: partial(progressive_counts, floor=floor or None, power=power),
        arguments={"floor": 0, "power": 1.0},
    ),
    "dream": Named(
        summary="Dream's truncated counts", build=lambda eps: partial(dream_counts, eps=eps), arguments={"eps": 1e-3}
    ),
}


def split(text: str) -> tuple[str, list[str]]:
    """A name and its arguments.

    >>> split("klass:0.6,0.015")
    ('klass', ['0.6', '0.015'])
    """
    name, _, rest = text.partition(":")
    return name, [part.strip() for part in rest.split(",")] if rest else []


def order_of(text: str) -> tuple[str, Order]:
    """The order that a text names, under our own name for it."""
    name, _, rest = text.partition(":")
    name = SAME_ORDER.get(name, name)
    if name not in ORDERS:
        raise unknown("order", name, ORDERS)
    return (f"{name}:{rest}" if rest else name), ORDERS[name]


def build_order(text: str, context: Context) -> Select:
    """The Select that an order's text stands for."""
    select: Select = _build("order", text, ORDERS, context)
    return select


def build_eos(text: str) -> Rank:
    """The EOS policy that a text stands for."""
    rank: Rank = _build("EOS policy", text, EOS)
    return rank


def build_schedule(text: str) -> Schedule:
    """The schedule that a text stands for."""
    schedule: Schedule = _build("schedule", text, SCHEDULES)
    return schedule


def _build(kind: str, text: str, table: Mapping[str, Named], *context: Context) -> Any:
    """Look a name up and call its `build` with the arguments in the text; whatever does not fit is refused."""
    name, values = split(text)
    if name not in table:
        raise unknown(kind, name, table)
    line = table[name]
    defaults = dict(line.arguments or {})
    given: dict[str, Any] = {}
    if line.file:
        if not values:
            raise InputError(f"{kind} {name!r} needs a file; write {line.usage(name)}")
        given["file"] = values.pop(0)
    if line.words:
        words = [value for value in values if not _is_number(value)]
        for word in words:
            if word not in line.words:
                raise unknown(f"rule of {kind} {name!r},", word, line.words)
        given["word"] = words[0] if words else line.words[0]
        values = [value for value in values if _is_number(value)]
    if len(values) > len(defaults) or not all(_is_number(value) for value in values):
        wants = f"takes no arguments; write {name}" if line.usage(name) == name else f"is written {line.usage(name)}"
        raise InputError(f"{kind} {text!r}: {name} {wants}")
    for (argument, default), value in zip(defaults.items(), values, strict=False):
        number = float(value)
        if isinstance(default, int) and not number.is_integer():
            raise InputError(f"{kind} {text!r}: {argument}={value} must be a whole number")
        defaults[argument] = int(number) if isinstance(default, int) else number
    return line.build(*context, **given, **defaults)


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def read_token_counts(path: str | Path) -> dict[int, int]:
    """Token counts from a JSON object {"id": count}, or PC-Sampler's own file with `p_baseline_dict`."""
    try:
        counts = json.loads(Path(path).read_text(encoding="utf-8"))
        counts = counts.get("p_baseline_dict", counts)
        return {int(token): int(count) for token, count in counts.items()}
    except OSError as error:
        raise InputError(f"token counts {path} cannot be read: {error.strerror}") from None
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        raise InputError(f'{path} is not a JSON object from token id to count, like {{"17": 4}}') from None
