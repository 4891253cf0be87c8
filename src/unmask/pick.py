"""Which token goes into a slot. A choice of tokens sees the raw predictions, never an EOS policy."""

# B batch, L open slots, M rows of the head, V vocabulary
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmask.errors import InputError
from unmask.rng import LEAST_TEMPERATURE, Stream, gumbel, subkey
from unmask.view import View

Pick = Callable[[View, Bool[Tensor, "B L"]], Int[Tensor, "B L"]]
"""pick(view, where): a token for each slot in `where`; the same slot gets the same token however often it is asked."""


def greedy(view: View, where: Bool[Tensor, "B L"]) -> Int[Tensor, "B L"]:
    """The argmax of the raw logits; equal logits go to the lowest id."""
    del where
    return view.stats.token


def sampled(temperature: float, *, top_p: float | None = None, top_k: int | None = None) -> Pick:
    """argmax(logits / temperature + Gumbel), among the `top_k` best or the smallest set with probability `top_p`.

    The noise of a token depends on (row key, step, canvas position, token) alone.
    """
    check_sampling(temperature, top_p, top_k)

    def pick(view: View, where: Bool[Tensor, "B L"]) -> Int[Tensor, "B L"]:
        def draw(logits: Tensor, row: int, slots: Tensor) -> Tensor:
            key = subkey(view.keys[row], view.step, int(Stream.TOKEN), view.slots[row, slots])
            tokens = torch.arange(logits.shape[-1], device=logits.device)
            return (nucleus(logits / temperature, top_p, top_k) + gumbel(subkey(key[:, None], tokens))).argmax(-1)

        return view.predictions.map_logits(draw, where).long()

    return pick


def check_sampling(temperature: float, top_p: float | None, top_k: int | None) -> None:
    """Refuse what cannot be sampled from."""
    if not LEAST_TEMPERATURE <= temperature <= 1 / LEAST_TEMPERATURE:
        limits = f"{LEAST_TEMPERATURE} and {1 / LEAST_TEMPERATURE:g}"
        raise InputError(f"temperature={temperature} must lie between {limits}, or be 0 for the likeliest token")
    if top_p is not None and not 0 < top_p <= 1:
        raise InputError(f"top_p={top_p} must lie in (0, 1]")
    if top_k is not None and top_k < 1:
        raise InputError(f"top_k={top_k} must be at least 1")


def nucleus(logits: Float[Tensor, "M V"], top_p: float | None, top_k: int | None) -> Float[Tensor, "M V"]:
    """Logits with everything outside top-p, then top-k, at minus infinity (Dream's order). Ties go to the lowest id.

    >>> nucleus(torch.tensor([[2.0, 1.0, 0.0]]), None, 2)
    tensor([[2., 1., -inf]])
    """
    if top_p is None and top_k is None:
        return logits
    values, order = logits.sort(dim=-1, descending=True, stable=True)
    if top_p is not None and top_p < 1:
        mass_before = values.softmax(-1).cumsum(-1) - values.softmax(-1)
        outside = mass_before > top_p
        outside[:, 0] = False
        values = values.masked_fill(outside, -torch.inf)
    if top_k is not None and top_k < values.shape[-1]:
        values = values.clone()
        values[:, top_k:] = -torch.inf
    return torch.empty_like(logits).scatter_(1, order, values)
