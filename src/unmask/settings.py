"""Settings, for people and programs that type them, and how they become the strategies that the loop takes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import torch

from unmask.counts import Counts, Schedule, all_at_the_end, block_counts, dream_counts, one_by_one
from unmask.errors import InputError, unknown
from unmask.pick import Pick, check_sampling, greedy, sampled
from unmask.profiles import MEASURES, PROFILES, Profile, by_live_share, published_order
from unmask.rules import Context, Order, build_eos, build_order, build_schedule, order_of, split
from unmask.selection import Select, at_step, in_blocks

ELSEWHERE = {
    **dict.fromkeys(("gen_length", "max_new_tokens", "max_tokens", "max_length"), "here it is 'length'"),
    **dict.fromkeys(("diffusion_steps", "num_inference_steps"), "here it is 'steps'"),
    **dict.fromkeys(("remasking", "alg"), "here it is 'order'"),
    "block_length": "here it is 'blocks'",
    "alg_temp": "here it is 'order_temperature'",
    "confidence_eos_eot_inf": "here it is eos='suppress'",
    "eos_penalty": "here it is eos='penalty:3'",
    "logits_eos_inf": "ban the token in Python: decode(..., banned=[...])",
    "cfg_scale": "classifier-free guidance is not implemented",
    "output_history": "every answer has a record",
    "attention_mask": "give a list of prompts; padding is not needed",
    "mask_id": "it is read from the model's config.json",
}
"""What other programs call our settings, or why there is none."""
WORDS: Mapping[tuple[type, ...], str] = {(str,): "text", (int,): "a whole number", (int, float): "a number"}
CHOOSES_ITSELF = "adaptive"
"""The schedule of an order that decides how many slots to reveal."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to decode. `None` means: as the profile has it."""

    length: int = 128
    """Tokens to generate (the window)."""
    steps: int | None = None
    """Denoising steps; by default a quarter of the length, and at most the length for adaptive orders."""
    order: str | None = None
    """Which positions first: see unmask.rules.ORDERS."""
    first: str | None = None
    """Another order for step 1 alone, for instance `random`."""
    order_temperature: float = 0.0
    """Draw the order from softmax(score / this) instead of taking the best (Dream's alg_temp)."""
    eos: str | None = None
    """EOS policy of the ranking: see unmask.rules.EOS."""
    schedule: str | None = None
    """How many a step: see unmask.rules.SCHEDULES."""
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
        """Settings from keywords; unknown names and values of the wrong kind are refused."""
        kinds = {field.name: field.type for field in fields(Settings)}
        for name, value in options.items():
            if name in ELSEWHERE:
                raise InputError(f"unknown setting {name!r}; {ELSEWHERE[name]}")
            if name not in kinds:
                raise unknown("setting", name, kinds)
            kind = str(getattr(kinds[name], "__name__", kinds[name]))
            if value is None and "None" in kind:
                continue
            wanted: tuple[type, ...] = (str,) if kind.startswith("str") else (int,) if kind.startswith("int") else (int, float)
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise InputError(f"{name}={value!r} must be {WORDS[wanted]}")
        return Settings(**options)


@dataclass(frozen=True)
class Strategy:
    """What the loop needs, built from settings."""

    settings: Settings
    """With everything filled in that the profile decides, but steps, which may depend on the row."""
    profile: Profile
    select: Select
    pick: Pick
    schedule: Schedule
    adaptive: bool

    def counts(self, length: int) -> Counts:
        """The counts for a row with this many open slots."""
        steps, block = self.settings.steps, self.settings.blocks
        if steps is None:
            steps = length if self.adaptive else max(1, length // 4)
            if block is not None and 0 < block <= length:  # the nearest number that splits evenly
                steps = max(1, steps // (length // block)) * (length // block)
        return self.schedule(length, steps) if block is None else block_counts(length, steps, block=block, inner=self.schedule)


def build_strategy(
    settings: Settings, *, vocab_size: int, end_ids: tuple[int, ...], dtype: torch.dtype, select: Select | None = None
) -> Strategy:
    """Turn settings into the functions that the loop takes; `select` is an order of the caller's own."""
    if settings.profile not in PROFILES:
        raise unknown("profile", settings.profile, PROFILES)
    profile = PROFILES[settings.profile]
    if select is not None:
        _refuse_beside_own_order(settings)
        name, order = getattr(select, "__name__", "own"), Order(summary="", build=lambda context: select, ranked=False)
    else:
        name, order = order_of(profile.order if settings.order is None else settings.order)
    eos, schedule_name = _eos(settings, name, order, profile), _schedule(settings, name, order, profile)
    _check(settings, name, order, profile)
    settings = replace(settings, order=name, eos=eos, schedule=schedule_name)

    pick: Pick = greedy
    if settings.temperature > 0:
        pick = sampled(settings.temperature, top_p=settings.top_p, top_k=settings.top_k)
    context = Context(build_eos(eos), pick, vocab_size, settings.order_temperature)
    schedule: Schedule = all_at_the_end if order.keeps_own_counts else one_by_one
    if schedule_name != CHOOSES_ITSELF:
        schedule = build_schedule(schedule_name)

    def in_block(chosen: Select) -> Select:
        return chosen if settings.blocks is None else in_blocks(settings.blocks, chosen)

    if profile.published and name in MEASURES:
        chosen = published_order(
            name, pick=pick, profile=profile, dtype=dtype, temperature=settings.temperature, top_p=settings.top_p,
            top_k=settings.top_k, order_temperature=settings.order_temperature,
            suppressed=end_ids if split(eos)[0] == "suppress" else (), block=settings.blocks,
        )  # fmt: skip
        if isinstance(schedule, partial) and schedule.func is dream_counts and settings.blocks is None:
            chosen, schedule = by_live_share(chosen, **schedule.keywords), all_at_the_end
    else:
        chosen = in_block(build_order(name, context) if select is None else select)
    if settings.first is not None:
        chosen = at_step(1, in_block(build_order(order_of(settings.first)[0], context)), otherwise=chosen)
    return Strategy(settings, profile, chosen, pick, schedule, order.adaptive)


def _eos(settings: Settings, name: str, order: Order, profile: Profile) -> str:
    """The EOS policy: as set, or the profile's where the order ranks at all."""
    if settings.eos is None:
        return profile.eos if order.ranked else "none"
    policy = split(settings.eos)[0]
    if not order.ranked and policy != "none":
        raise InputError(
            f"order {name!r} is not ranked by predictions, so eos={settings.eos!r} has nothing to act on; leave it out"
        )
    if profile.published and name in MEASURES and policy not in ("none", "suppress"):
        raise InputError(f"profile {settings.profile!r} has no EOS policy {policy!r}; use none, suppress, or profile 'unmask'")
    return settings.eos


def _schedule(settings: Settings, name: str, order: Order, profile: Profile) -> str:
    """The schedule: as set, or the order's own if it decides how many, else the profile's."""
    if order.keeps_own_counts and (settings.schedule or settings.blocks or settings.first):
        raise InputError(f"order {name!r} keeps its own counts over the whole window; leave out schedule, blocks and first")
    if order.adaptive and settings.blocks and (settings.schedule or settings.steps):
        raise InputError(f"order {name!r} finishes each block when it can; leave out steps and schedule beside blocks")
    if settings.schedule is None:
        return CHOOSES_ITSELF if order.adaptive else profile.schedule
    if settings.schedule == CHOOSES_ITSELF and not order.adaptive:
        raise InputError(f"order {name!r} does not decide how many to reveal; use a schedule such as linear")
    return settings.schedule


def _refuse_beside_own_order(settings: Settings) -> None:
    for name, value in (
        ("order", settings.order),
        ("eos", settings.eos),
        ("order_temperature", settings.order_temperature or None),
    ):
        if value is not None:
            raise InputError(f"{name}={value!r} has nothing to act on beside select=...; put it into your own rule")


def _check(settings: Settings, name: str, order: Order, profile: Profile) -> None:
    """Values that no later check would name as the user knows them."""
    limits = [
        ("length", settings.length, 1 <= settings.length <= 1_000_000, "lie between 1 and 1000000"),
        ("steps", settings.steps, settings.steps is None or settings.steps >= 1, "be at least 1"),
        ("blocks", settings.blocks, settings.blocks is None or settings.blocks >= 1, "be at least 1"),
        ("seed", settings.seed, 0 <= settings.seed < 2**63, "lie between 0 and 2**63 - 1"),
        ("temperature", settings.temperature, 0 <= settings.temperature < float("inf"), "be a number >= 0"),
        ("order_temperature", settings.order_temperature, 0 <= settings.order_temperature < float("inf"), "be a number >= 0"),
    ]
    for setting, value, fits, must in limits:
        if not fits:
            raise InputError(f"{setting}={value} must {must}")
    if settings.order_temperature > 0 and not order.scored:
        raise InputError(
            f"order {name!r} has no score that order_temperature={settings.order_temperature} could perturb; leave it out"
        )
    if settings.first is not None and settings.blocks and profile.published and order_of(settings.first)[1].adaptive:
        raise InputError(
            f"first={settings.first!r} cannot go beyond the first block of profile {settings.profile!r}; leave out blocks"
        )
    if settings.first is not None and order_of(settings.first)[1].keeps_own_counts:
        raise InputError(f"first={settings.first!r} keeps its own counts over all steps; use it as the order instead")
    if settings.top_p is not None or settings.top_k is not None:
        if settings.temperature == 0 and not profile.tempered:
            raise InputError("top_p and top_k only act when sampling; set a temperature above 0")
        check_sampling(settings.temperature or 1.0, settings.top_p, settings.top_k)
