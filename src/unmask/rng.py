"""Randomness as a pure function of (row key, step, stream, position, token).

There is no generator object and no hidden state: a number depends only on what it is for, so a row draws the same
numbers alone or in a batch, in one process or many, on every device. The mixing function is the finaliser of
SplitMix64 (Steele, Lea and Flood, 2014), in wrapping 64-bit integers.
"""

import math
from collections.abc import Sequence
from enum import IntEnum

import torch
from jaxtyping import Float, Int
from torch import Tensor

GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed 64-bit integer
MASK_64 = (1 << 64) - 1

LEAST_TEMPERATURE = 1e-6
"""A score divided by less than this, or by more than its inverse, would overflow float32 beside its noise."""


class Stream(IntEnum):
    """What a number is for; two purposes never share their numbers."""

    ORDER = 1
    TOKEN = 2
    REVEAL = 3


def _shift_right(value: Tensor, bits: int) -> Tensor:
    """A logical shift: torch's own is arithmetic on signed integers."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def mix(value: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """SplitMix64's finaliser, a bijection of the 64-bit integers."""
    value = (value ^ _shift_right(value, 30)) * -4658895280553007687
    value = (value ^ _shift_right(value, 27)) * -7723592293110705685
    return value ^ _shift_right(value, 31)


def row_keys(seeds: Sequence[int | tuple[int, int]], device: torch.device | str = "cpu") -> Int[Tensor, " B"]:
    """One key a row, from its seed or (seed, sample); the place in the batch is not part of it.

    >>> bool(row_keys([5, 7])[1] == row_keys([7])[0])
    True
    """
    pairs = [seed if isinstance(seed, tuple) else (seed, 0) for seed in seeds]
    raw = torch.tensor([[_signed(seed), _signed(sample)] for seed, sample in pairs], dtype=torch.int64)
    return mix(mix(raw[:, 0] + GOLDEN) + (raw[:, 1] + 1) * GOLDEN).to(device)


def _signed(value: int) -> int:
    value &= MASK_64
    return value - (1 << 64) if value >> 63 else value


def subkey(key: Int[Tensor, "*shape"], *labels: int | Tensor) -> Int[Tensor, "*out"]:
    """A new key for each combination of labels (numbers, or tensors that broadcast)."""
    for label in labels:
        key = mix(key + (_signed((label + 1) * GOLDEN) if isinstance(label, int) else (label + 1) * GOLDEN))
    return key


def uniform(key: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Uniform in [0, 1), 53 bits, float64."""
    return _shift_right(key, 11).double() * 2.0**-53


def gumbel(key: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Standard Gumbel noise in float32, exact in the upper tail, the one that decides an argmax."""
    exponential = -torch.log1p(-uniform(key).float().clamp_max(1 - 2.0**-24))
    return -torch.log(exponential.clamp_min(math.ldexp(1.0, -54)))
