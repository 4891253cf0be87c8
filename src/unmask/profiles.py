"""Compatibility profiles: one table of what the published programs do, and the selection rules that do it.

A profile reproduces the published order of operations, dtypes, rounding and tie behaviour, so that a user who moves over
sees identical tokens first. docs/profiles.md says what differs from our own default and why.
"""

# B batch, L open slots, M rows of the head, V vocabulary
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from unmask.counts import dream_share
from unmask.pick import Pick, nucleus
from unmask.rng import Stream, gumbel, subkey
from unmask.selection import Select
from unmask.view import Choice, View


@dataclass(frozen=True)
class Profile:
    """What one published program does where programs differ."""

    summary: str
    order: str = "margin"
    eos: str = "anneal:3"
    schedule: str = "progressive"
    published: bool = False
    """Ranked by a full softmax and torch.topk, as published, instead of by our own exact statistics."""
    softmax: torch.dtype | None = None
    """The confidence's dtype; None is that of the logits."""
    tempered: bool = False
    """The temperature and top-p/top-k apply before the confidence is measured (Dream)."""
    bans: bool = True
    """The mask and rows without a token are never committed."""
    pads_left: bool = False
    """Shorter prompts of a batch are filled up on the left with padding that is attended to (d1)."""


PROFILES: Mapping[str, Profile] = {
    "unmask": Profile("ours: margin order, annealed EOS, progressive schedule, exact statistics"),
    "llada": Profile(
        "ML-GSAI/LLaDA generate.py, 2025-10 and later: softmax in the logits' dtype",
        order="top1", eos="none", schedule="linear", published=True, bans=False,
    ),
    "llada-2025-02": Profile(
        "ML-GSAI/LLaDA generate.py as first published: softmax in float64",
        order="top1", eos="none", schedule="linear", published=True, softmax=torch.float64, bans=False,
    ),
    "d1": Profile(
        "dllm-reasoning/d1 and SPG evaluation: softmax in float32, left padding attended to",
        order="top1", eos="none", schedule="linear", published=True, softmax=torch.float32, bans=False, pads_left=True,
    ),
    "dream": Profile(
        "Dream diffusion_generate: counts from t = linspace(1, eps), confidence after temperature, top-p and top-k",
        order="origin", eos="none", schedule="dream", published=True, tempered=True, bans=False,
    ),
}  # fmt: skip


def published_order(
    measure: str,
    *,
    pick: Pick,
    profile: Profile,
    dtype: torch.dtype,
    temperature: float = 0.0,
    top_p: float | None = None,
    top_k: int | None = None,
    order_temperature: float = 0.0,
    suppressed: tuple[int, ...] = (),
    block: int | None = None,
) -> Select:
    """Rank as the published programs do: full softmax, the probability of the token that would be written, torch.topk.

    `dtype` is that of the model's logits. Ties are broken by torch.topk over the whole row, in whatever way it does. With
    `block`, the step's number says which block has been reached, and every mask up to its end may be chosen.
    """
    kind = profile.softmax or dtype

    def select(view: View) -> Choice:
        if block is not None:
            view = _up_to_block(view, block)
        token = pick(view, view.masked)

        def confidence(logits: Tensor, row: int, slots: Tensor) -> Tensor:
            logits = logits.to(dtype)
            if suppressed:
                logits = logits.index_fill(1, torch.tensor(suppressed, device=logits.device), -torch.inf)
            if profile.tempered:
                logits = logits / temperature if temperature > 0 else logits
                logits = nucleus(logits, top_p, top_k)
            return MEASURES[measure](logits.to(kind).softmax(-1), token[row, slots])

        scores = view.predictions.map_logits(confidence, view.masked, fill=-torch.inf)
        scores = torch.where(view.masked, scores, -torch.inf)
        if order_temperature > 0:
            key = subkey(view.keys[:, None], view.step, int(Stream.ORDER), view.slots)
            scores = scores.float() / order_temperature + gumbel(key)
        return Choice(_topk(scores, view), scores)

    return select


def by_live_share(select: Select, *, eps: float = 1e-3) -> Select:
    """Dream counts the masks anew at every step: int(masks * (1 - s/t)), in float32, and all that are left at the last.

    Like `dream_counts`, unless the model writes mask tokens, which then have to be revealed again.
    """

    def with_count(view: View) -> Choice:
        left = view.masked.sum(-1)
        share = torch.stack([dream_share(view.step, int(steps), eps=eps) for steps in view.steps]).to(left.device)
        return select(view.among(view.masked, (left.float() * share).long(), view.start))

    return with_count


def _up_to_block(view: View, block: int) -> View:
    """The slots up to the end of the block that this step belongs to, the steps being split evenly over the blocks."""
    blocks = view.open.sum(-1) // block
    reached = ((view.step - 1) * blocks // view.steps + 1) * block
    inside = torch.arange(view.masked.shape[1], device=view.masked.device) < reached[:, None]
    return view.among(view.masked & inside, view.count, reached - block)


def _topk(scores: Float[Tensor, "B L"], view: View) -> Tensor:
    """torch.topk over each whole canvas row, with everything but the masked slots at minus infinity."""
    reveal = torch.zeros_like(view.masked)
    for row, length in enumerate(view.lengths.tolist()):
        line = torch.full((length,), -torch.inf, dtype=scores.dtype, device=scores.device)
        slots = view.slots[row, view.open[row]]
        line[slots] = scores[row, view.open[row]]
        chosen = line.topk(int(view.count[row])).indices
        reveal[row] = torch.isin(view.slots[row], chosen) & view.open[row] & view.masked[row]
    return reveal


def _chosen(p: Float[Tensor, "M V"], token: Tensor) -> Float[Tensor, " M"]:
    return p.gather(1, token[:, None])[:, 0]


def _margin(p: Float[Tensor, "M V"], token: Tensor) -> Float[Tensor, " M"]:
    del token
    best, second = p.topk(2).values.unbind(1)
    return best - second


def _negative_entropy(p: Float[Tensor, "M V"], token: Tensor) -> Float[Tensor, " M"]:
    del token
    return (p * (p + 1e-10).log()).sum(-1)


MEASURES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "top1": _chosen, "margin": _margin, "entropy": _negative_entropy
}  # fmt: skip
