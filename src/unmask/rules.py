"""Orders, EOS policies and schedules by name: the only place where a rule's name is looked up.

A rule is written as a name with arguments: `anneal:3`, `klass:0.6,0.015`. A further order is a function, anywhere, and a line
in ORDERS.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from unmask.adaptive import above, by_factor, entropy_bounded, origin, self_planned, stable
from unmask.counts import Schedule, all_at_the_end, dream_counts, linear_counts, one_by_one, progressive_counts
from unmask.errors import InputError, unknown
from unmask.pick import Pick
from unmask.ranking import Rank, eos_annealed, eos_penalized, eos_suppressed, raw
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

SAME_ORDER = {"low_confidence": "top1", "maskgit_plus": "top1", "topk_margin": "margin"}
"""What LLaDA's and Dream's programs call our orders."""


@dataclass(frozen=True)
class Context:
    """What a named rule may depend on."""

    rank: Rank
    pick: Pick
    vocab_size: int
    order_temperature: float


@dataclass(frozen=True)
class Rule:
    """One line of ORDERS."""

    summary: str
    build: Callable[[list[str], Context], Select]
    arguments: str = ""
    adaptive: bool = False
    schedule: Schedule = one_by_one
    """The default schedule of an adaptive rule."""


def _numbers(name: str, values: list[str], *defaults: float) -> list[float]:
    """Numeric arguments with defaults; too many or not a number is refused."""
    if len(values) > len(defaults):
        raise InputError(f"{name!r} takes at most {len(defaults)} numbers, not {len(values)}: {','.join(values)}")
    try:
        given = [float(value) for value in values]
    except ValueError:
        raise InputError(f"{name!r} takes numbers, not {','.join(values)!r}") from None
    if not all(abs(number) < float("inf") for number in given):
        raise InputError(f"{name!r} takes finite numbers, not {','.join(values)!r}")
    return [*given, *defaults[len(given) :]]


def _by(score: Score) -> Callable[[list[str], Context], Select]:
    def build(values: list[str], context: Context) -> Select:
        _numbers("order", values)
        return top_by(_noisy(score, context), rank=context.rank)

    return build


def _noisy(score: Score, context: Context) -> Score:
    return perturbed(score, context.order_temperature) if context.order_temperature else score


def _conv(values: list[str], context: Context) -> Select:
    width, slope = _numbers("conv", values, 5, 1.0)
    return top_by(_noisy(near_known(top1_probability, width=int(width), slope=slope), context), rank=context.rank)


def _pc(values: list[str], context: Context) -> Select:
    if not values:
        raise InputError("order 'pc' needs a file of token counts: pc:FILE[,decay[,cap]], a JSON object from id to count")
    decay, cap = _numbers("pc", values[1:], 0.25, 10.0)
    frequencies = token_frequencies(read_token_counts(values[0]), context.vocab_size)
    return top_by(_noisy(position_and_content(frequencies, decay=decay, cap=cap), context), rank=context.rank)


def read_token_counts(path: str | Path) -> dict[int, int]:
    """Token counts from a JSON object {"id": count}, or PC-Sampler's own file with `p_baseline_dict`."""
    try:
        raw_counts = json.loads(Path(path).read_text(encoding="utf-8"))
        raw_counts = raw_counts.get("p_baseline_dict", raw_counts)
        return {int(token): int(count) for token, count in raw_counts.items()}
    except OSError as error:
        raise InputError(f"token counts {path} cannot be read: {error.strerror}") from None
    except (ValueError, AttributeError, TypeError):
        raise InputError(f'{path} is not a JSON object from token id to count, like {{"17": 4}}') from None


ORDERS: Mapping[str, Rule] = {
    "top1": Rule("highest probability of the likeliest token", _by(top1_probability)),
    "margin": Rule("largest gap between the two likeliest tokens", _by(probability_margin)),
    "entropy": Rule("lowest entropy", _by(negative_entropy)),
    "random": Rule("uniformly at random (ancestral)", lambda values, context: uniform()),
    "conv": Rule("convolutional decoding: top1 near known text", _conv, "width,slope"),
    "pc": Rule("PC-Sampler: position and rarity", _pc, "FILE,decay,cap"),
    "threshold": Rule(
        "Fast-dLLM: all above a probability",
        lambda v, c: above(_numbers("threshold", v, 0.9)[0], rank=c.rank), "p", True,
    ),
    "factor": Rule(
        "Fast-dLLM: the n-th while p >= 1 - f/(n+1)",
        lambda v, c: by_factor(_numbers("factor", v, 1.0)[0], rank=c.rank), "f", True,
    ),
    "eb": Rule("EB-sampler: entropy budget", lambda v, c: entropy_bounded(*_numbers("eb", v, 0.1), rank=c.rank), "gamma", True),
    "klass": Rule(
        "KLASS: sure and no longer moving", lambda v, c: stable(*_numbers("klass", v, 0.9, 0.01), rank=c.rank), "p,kl", True
    ),
    "p2": Rule("P2 self-planning, may mask again", lambda v, c: self_planned(c.pick), "", True, all_at_the_end),
    "origin": Rule("Dream's origin: each with probability 1 - s/t", lambda v, c: origin(), "", True, all_at_the_end),
}  # fmt: skip
"""Every order that has a name. A further one is a function and a line here."""


@dataclass(frozen=True)
class NamedSchedule:
    """One line of SCHEDULES."""

    summary: str
    build: Callable[[list[str]], Schedule]
    arguments: str = ""


def _linear(values: list[str]) -> Schedule:
    _numbers("linear", values)
    return linear_counts


def _progressive(values: list[str]) -> Schedule:
    floor, power = _numbers("progressive", values, -1.0, 1.0)
    if values and not floor.is_integer():
        raise InputError(f"progressive:{values[0]}: the floor is a whole number of tokens")
    return partial(progressive_counts, floor=int(floor) if values else None, power=power)


def _dream(values: list[str]) -> Schedule:
    return partial(dream_counts, eps=_numbers("dream", values, 1e-3)[0])


SCHEDULES: Mapping[str, NamedSchedule] = {
    "linear": NamedSchedule("the same number at every step, the remainder first", _linear),
    "progressive": NamedSchedule(
        "few at first, more later; floor to every step (the paper's w and v)", _progressive, "floor,power"
    ),
    "dream": NamedSchedule("Dream's truncated counts", _dream, "eps"),
}
EOS = {
    "none": "rank by the raw predictions",
    "anneal": "scale the EOS logit by a temperature that falls to 1: anneal:start,rule with damp, divide or power",
    "suppress": "rank as if end tokens could not occur",
    "penalty": "subtract from the EOS logit, fading: penalty:strength",
}


def split(text: str) -> tuple[str, list[str]]:
    """A name and its arguments.

    >>> split("klass:0.6,0.015")
    ('klass', ['0.6', '0.015'])
    """
    name, _, rest = text.partition(":")
    return name, [part.strip() for part in rest.split(",")] if rest else []


def rule_of(order: str) -> Rule:
    """The rule that an order names."""
    name, _ = split(order)
    if name not in ORDERS:
        raise unknown("order", name, ORDERS)
    return ORDERS[name]


def build_eos(text: str) -> Rank:
    """The EOS policy that a setting names."""
    name, values = split(text)
    if name not in EOS:
        raise unknown("EOS policy", name, EOS)
    if name == "anneal":
        rule = values.pop() if len(values) == 2 else "damp"
        return eos_annealed(start=_numbers("anneal", values, 3.0)[0], rule=rule)
    if name == "penalty":
        return eos_penalized(_numbers("penalty", values, 3.0)[0])
    _numbers(name, values)
    return eos_suppressed() if name == "suppress" else raw


def build_schedule(text: str) -> Schedule:
    """The schedule that a setting names."""
    name, values = split(text)
    if name not in SCHEDULES:
        raise unknown("schedule", name, SCHEDULES)
    return SCHEDULES[name].build(values)
