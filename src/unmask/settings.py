"""Settings, for people and programs that type them, and how they become the strategies that the loop takes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import torch

from unmask.counts import Counts, Schedule, all_at_the_end, block_counts, dream_counts
from unmask.errors import InputError, unknown
from unmask.pick import Pick, check_sampling, greedy, sampled
from unmask.profiles import MEASURES, PROFILES, Profile, by_live_share, published_order
from unmask.rules import SAME_ORDER, Context, build_eos, build_schedule, rule_of, split
from unmask.selection import Select, at_step, in_blocks

ELSEWHERE = {
    "gen_length": "length", "max_new_tokens": "length", "block_length": "blocks", "remasking": "order", "alg": "order",
    "alg_temp": "order_temperature",
}  # fmt: skip
"""What LLaDA's and Dream's programs call our settings."""


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

    assert settings.schedule is not None
    schedule = rule.schedule if settings.schedule == "adaptive" else build_schedule(settings.schedule)

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
        if isinstance(schedule, partial) and schedule.func is dream_counts and settings.blocks is None:
            select, schedule = by_live_share(select, **schedule.keywords), all_at_the_end
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
