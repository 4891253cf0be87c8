"""What is hidden from the model, what it may look at, and what it is asked: three objectives, mixed row by row.

causal   nothing is hidden, a position sees what stands before it, and every token of the answer is asked
block    the answer is known up to a place, masked here and there for one block, unknown after it: the block's masks are asked
uniform  every slot is masked with one probability, drawn from (0, 1]: all masks are asked (LLaDA's and Dream's objective)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmask.pretraining.examples import Batch
from unmask.pretraining.recipe import OBJECTIVES

BLOCK = 32
"""The longest block."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """One batch as the model gets it."""

    inputs: Int[Tensor, "B S"]
    targets: Int[Tensor, "B S"]
    sees: Bool[Tensor, "B 1 S S"]
    weight: Float[Tensor, "B S"]
    """How much the prediction of each position counts; a row's weights sum to one."""
    kind: Int[Tensor, " B"]
    """Which objective a row has, as its place in OBJECTIVES."""


def make_lesson(
    batch: Batch, shares: Mapping[str, float], *, mask_id: int, generator: torch.Generator, ordered_from: int = 0
) -> Lesson:
    """Hide and ask, by objectives drawn row by row; answers of fewer than `ordered_from` tokens get uniform masks."""
    rows, width = batch.tokens.shape
    place = torch.arange(width)[None]
    start, end, length = (part[:, None] for part in (batch.start, batch.end, batch.length))
    mix = torch.tensor([float(shares.get(name, 0.0)) for name in OBJECTIVES])
    kind = torch.multinomial(mix, rows, replacement=True, generator=generator)
    kind = torch.where(batch.end - batch.start < ordered_from, OBJECTIVES.index("uniform"), kind)
    slot = (place >= start) & (place < length)
    noise = torch.rand(rows, width, generator=generator)
    level, where, size = torch.rand(3, rows, 1, generator=generator)

    causal = slot & (place <= end)
    # one slot at least is asked: the one with the least noise
    hidden = slot & (noise < level)
    hidden = hidden | (slot & (noise == noise.masked_fill(~slot, 2.0).amin(-1, keepdim=True)))
    cut = start + (where * (end + 1 - start)).long()
    stop = torch.minimum(cut + 1 + (size * BLOCK).long(), length)
    inside = (place >= cut) & (place < stop)
    asked_in_block = inside & (noise < level)
    asked_in_block = asked_in_block | (inside & (noise == noise.masked_fill(~inside, 2.0).amin(-1, keepdim=True)))

    is_causal, is_block = (kind == 0)[:, None], (kind == 1)[:, None]
    asked = torch.where(is_causal, causal, torch.where(is_block, asked_in_block, hidden))
    masked = torch.where(is_causal, False, torch.where(is_block, asked_in_block | (slot & (place >= stop)), hidden))
    valid = (place < length)[:, None, None]
    before = (place[0][:, None] >= place[0])[None, None]
    return Lesson(
        torch.where(masked, mask_id, batch.tokens),
        batch.tokens,
        valid & (before | ~is_causal[:, :, None, None]),
        asked / asked.sum(-1, keepdim=True),
        kind,
    )


def losses(logits: Float[Tensor, "B R V"], lesson: Lesson) -> Float[Tensor, " B"]:
    """The mean negative log-likelihood of what is asked, a row. Logits at i predict position i + 1, as in Dream."""
    each = F.cross_entropy(logits.flatten(0, 1).float(), lesson.targets[:, 1:].flatten(), reduction="none")
    return (each.view(logits.shape[:2]) * lesson.weight[:, 1:]).sum(-1)
