"""How sure the model is of a slot: one number each, higher is revealed earlier."""

# B batch, L open slots
from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from unmask.errors import InputError
from unmask.predictions import Stats
from unmask.rng import LEAST_TEMPERATURE, Stream, gumbel, subkey
from unmask.view import View

Score = Callable[[View, Stats], Float[Tensor, "B L"]]
"""score(view, stats): `stats` are the predictions as the EOS policy left them."""


def top1_probability(view: View, stats: Stats) -> Float[Tensor, "B L"]:
    """The probability of the argmax token."""
    del view
    return stats.probability


def probability_margin(view: View, stats: Stats) -> Float[Tensor, "B L"]:
    """The probability of the argmax token minus that of the runner-up."""
    del view
    return stats.margin


def negative_entropy(view: View, stats: Stats) -> Float[Tensor, "B L"]:
    """Minus the entropy of the predicted distribution."""
    del view
    return -stats.entropy


def perturbed(score: Score, temperature: float) -> Score:
    """score / temperature + Gumbel noise: the order is drawn without replacement from softmax(score / temperature).

    Dream's `alg_temp`. The noise is keyed by (row key, step, canvas position).
    """
    if not LEAST_TEMPERATURE <= temperature <= 1 / LEAST_TEMPERATURE:
        limits = f"{LEAST_TEMPERATURE} and {1 / LEAST_TEMPERATURE:g}"
        raise InputError(f"order temperature {temperature} must lie between {limits}; leave it out for a fixed order")

    def noisy(view: View, stats: Stats) -> Float[Tensor, "B L"]:
        key = subkey(view.keys[:, None], view.step, int(Stream.ORDER), view.slots)
        return score(view, stats) / temperature + gumbel(key)

    return noisy


def near_known(score: Score, *, width: int, slope: float = 1.0) -> Score:
    """Convolutional decoding: the score times tanh(slope * tokens known among the `width` positions around the slot)."""
    if not 1 <= width <= 1_000_000 or not 0 < slope < float("inf"):
        raise InputError(f"width={width} must lie between 1 and 1000000, and slope={slope} above 0")
    reach = width // 2  # an even width is made odd

    def weighted(view: View, stats: Stats) -> Float[Tensor, "B L"]:
        total = view.known.long().cumsum(-1)
        last = total.shape[1] - 1
        below = view.slots - reach - 1
        upto = total.gather(1, (view.slots + reach).clamp_max(last))
        number = upto - torch.where(below >= 0, total.gather(1, below.clamp_min(0)), 0)
        return score(view, stats) * torch.tanh(slope * number.double())

    return weighted


def position_and_content(frequencies: Float[Tensor, " V"], *, decay: float = 0.25, cap: float = 10.0) -> Score:
    """PC-Sampler: exp(-decay * i) * min(-p * log(f + 1e-9), cap) for the argmax token, of corpus frequency f.

    i counts from the start of the current block, 0 at its first slot.
    """

    if not (0 <= decay <= 1000 and 0 < cap <= 1e6):
        raise InputError(f"decay={decay} must lie between 0 and 1000, and cap={cap} above 0, up to 1000000")

    def weighted(view: View, stats: Stats) -> Float[Tensor, "B L"]:
        rarity = -(frequencies.to(stats.best)[stats.token].double() + 1e-9).log()
        content = (top1_probability(view, stats) * rarity).clamp_max(cap)
        offset = torch.arange(view.masked.shape[1], device=content.device) - view.start[:, None]
        return (-decay * offset.double()).exp() * content

    return weighted


def token_frequencies(counts: Mapping[int, int], vocab_size: int) -> Float[Tensor, " V"]:
    """count / total for every token seen, 1 / total for all others (PC-Sampler's smoothing)."""
    total = sum(counts.values())
    wrong = [token for token, count in counts.items() if not 0 <= token < vocab_size or count < 0]
    if wrong or total < 1:
        what = f"token {wrong[0]} has count {counts[wrong[0]]}" if wrong else "no token was counted"
        raise InputError(f"token counts: {what}; ids must lie in 0..{vocab_size - 1} and counts be >= 0, one of them > 0")
    frequencies = torch.full((vocab_size,), 1 / total)
    for token, count in counts.items():
        if count:
            frequencies[token] = count / total
    return frequencies
