"""Settings by name, for people and programs that type them, and how they become strategies.

A setting's text is a name with arguments: `anneal:3`, `klass:0.6,0.015`. Here is the only place where names are looked up.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from unmask.adaptive import above, by_factor, entropy_bounded, origin, self_planned, stable
from unmask.counts import (
    Counts,
    Schedule,
    all_at_the_end,
    block_counts,
    dream_counts,
    linear_counts,
    one_by_one,
    progressive_counts,
)
from unmask.errors import InputError, unknown
from unmask.pick import Pick, check_sampling, greedy, sampled
from unmask.profiles import MEASURES, PROFILES, Profile, by_live_share, published_order
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
from unmask.selection import Select, at_step, in_blocks, top_by, uniform

ELSEWHERE = {
    "gen_length": "length", "max_new_tokens": "length", "block_length": "blocks", "remasking": "order", "alg": "order",
    "alg_temp": "order_temperature",
}  # fmt: skip
"""What LLaDA's and Dream's programs call our settings."""
SAME_ORDER = {"low_confidence": "top1", "maskgit_plus": "top1", "topk_margin": "margin"}
"""And our orders."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to decode. `None` means: as the profile has it."""

    length: int = 128
    """Tokens to generate (the window)."""
    steps: int | None = None
    """Denoising steps; by default a quarter of the length, and the length itself for adaptive orders."""
    order: str | None = None
    """Which positions first: see ORDERS."""
    first: str | None = None
    """Another order for step 1 alone, for instance `random`."""
    order_temperature: float = 0.0
    """Draw the order from softmax(score / this) instead of taking the best (Dream's alg_temp)."""
    eos: str | None = None
    """EOS policy of the ranking: see EOS."""
    schedule: str | None = None
    """How many a step: see SCHEDULES."""
    blocks: int | None = None
    """Semi-autoregressive: blocks of this many tokens, from left to right."""
    temperature: float = 0.0
    """0 writes the likeliest token; above 0 samples."""
    top_p: float | None = None
    top_k: int | None = None
    seed: int = 0
    profile: str = "unmask"
    """Compatibility: see unmask.profiles."""

    @staticmethod
    def of(options: Mapping[str, Any]) -> "Settings":
        """Settings from keywords; an unknown one is refused."""
        names = [field.name for field in fields(Settings)]
        for name in options:
            if name in ELSEWHERE:
                raise InputError(f"unknown setting {name!r}; here it is {ELSEWHERE[name]!r}")
            if name not in names:
                raise unknown("setting", name, names)
        return Settings(**options)

    def resolved(self) -> "Settings":
        """With everything that the profile decides filled in, and every value checked."""
        if self.profile not in PROFILES:
            raise unknown("profile", self.profile, PROFILES)
        profile = PROFILES[self.profile]
        order = SAME_ORDER.get(self.order or "", self.order) or profile.order
        schedule = self.schedule or ("adaptive" if rule_of(order).adaptive else profile.schedule)
        return replace(self, order=order, eos=self.eos or profile.eos, schedule=schedule)


@dataclass(frozen=True)
class Strategy:
    """What the loop needs, built from settings."""

    settings: Settings
    profile: Profile
    select: Select
    pick: Pick
    schedule: Schedule
    adaptive: bool

    def counts(self, length: int) -> Counts:
        """The counts for a row with this many open slots; fewer steps where the row has fewer slots than steps."""
        steps = self.settings.steps
        if steps is None:
            steps = length if self.adaptive else max(1, length // 4)
            if self.settings.blocks and length % self.settings.blocks == 0:  # the nearest number that splits evenly
                blocks = length // self.settings.blocks
                steps = max(1, steps // blocks) * blocks
        if self.settings.blocks is None:
            return self.schedule(length, steps)
        return block_counts(length, steps, block=self.settings.blocks, inner=self.schedule)


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

SCHEDULES: Mapping[str, Schedule] = {"linear": linear_counts, "progressive": progressive_counts, "dream": dream_counts}
EOS = {
    "none": "rank by the raw predictions",
    "anneal": "scale the EOS logit by a temperature that falls to 1 (anneal:start,rule)",
    "suppress": "rank as if end tokens could not occur",
    "penalty": "subtract from the EOS logit, fading (penalty:3)",
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


def build_strategy(settings: Settings, *, vocab_size: int, end_ids: tuple[int, ...], dtype: torch.dtype) -> Strategy:
    """Turn settings into the functions that the loop takes."""
    settings = settings.resolved()
    assert settings.order is not None
    assert settings.eos is not None
    profile, rule = PROFILES[settings.profile], rule_of(settings.order)
    _check(settings)
    pick: Pick = greedy
    if settings.temperature > 0:
        pick = sampled(settings.temperature, top_p=settings.top_p, top_k=settings.top_k)
    context = Context(build_eos(settings.eos), pick, vocab_size, settings.order_temperature)
    if rule.schedule is all_at_the_end and (settings.blocks is not None or settings.schedule != "adaptive"):
        raise InputError(f"order {settings.order!r} keeps its own counts over the whole window; leave out schedule and blocks")

    if settings.schedule not in (*SCHEDULES, "adaptive"):
        assert settings.schedule is not None
        raise unknown("schedule", settings.schedule, SCHEDULES)
    schedule = rule.schedule if settings.schedule == "adaptive" else SCHEDULES[str(settings.schedule)]

    def in_block(select: Select) -> Select:
        return select if settings.blocks is None else in_blocks(settings.blocks, select)

    if profile.published and settings.order in MEASURES:
        eos, _ = split(settings.eos)
        if eos not in ("none", "suppress"):
            raise InputError(f"profile {settings.profile!r} has no EOS policy {eos!r}; use none, suppress, or profile 'unmask'")
        select = published_order(
            settings.order, pick=pick, profile=profile, dtype=dtype, temperature=settings.temperature,
            top_p=settings.top_p, top_k=settings.top_k, order_temperature=settings.order_temperature,
            suppressed=end_ids if eos == "suppress" else (), block=settings.blocks,
        )  # fmt: skip
        if settings.schedule == "dream" and settings.blocks is None:
            select, schedule = by_live_share(select), all_at_the_end
    else:
        select = in_block(rule.build(split(settings.order)[1], context))
    if settings.first is not None:
        first = rule_of(settings.first).build(split(settings.first)[1], context)
        select = at_step(1, in_block(first), otherwise=select)
    return Strategy(settings, profile, select, pick, schedule, rule.adaptive)


def _check(settings: Settings) -> None:
    """Values that no later check would name."""
    if not 1 <= settings.length <= 1_000_000:
        raise InputError(f"length={settings.length} must be at least 1")
    if settings.steps is not None and settings.steps < 1:
        raise InputError(f"steps={settings.steps} must be at least 1")
    if not 0 <= settings.seed < 2**63:
        raise InputError(f"seed={settings.seed} must lie between 0 and 2**63 - 1")
    if not 0 <= settings.order_temperature < float("inf"):
        raise InputError(f"order_temperature={settings.order_temperature} must be a number >= 0")
    if settings.temperature != 0 or settings.top_p is not None or settings.top_k is not None:
        if settings.temperature == 0 and not PROFILES[settings.profile].tempered:
            raise InputError("top_p and top_k only act when sampling; set a temperature above 0")
        check_sampling(settings.temperature or 1.0, settings.top_p, settings.top_k)
