"""How many slots to reveal at each step: plain tuples of integers, built and checked before the loop."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from unmask.errors import InputError

Counts = tuple[int, ...]
"""counts[d-1] slots are revealed at step d; they sum to the number of open slots."""
Schedule = Callable[[int, int], Counts]
"""(length, steps) -> counts."""


def linear_counts(length: int, steps: int) -> Counts:
    """The same number at every step, the remainder one each to the first steps (LLaDA's rule).

    >>> linear_counts(10, 4)
    (3, 3, 2, 2)
    """
    _check_steps(length, steps)
    base, extra = divmod(length, steps)
    return tuple(base + (step < extra) for step in range(steps))


def progressive_counts(length: int, steps: int, *, floor: int | None = None, power: float = 1.0) -> Counts:
    """Few at first, more later: `floor` to every step, the rest in proportion to d**power (the paper's w and v).

    Rounded by largest remainder so that the counts never decrease. The default floor is min(3, max(1, L//T - 1)),
    which keeps the first count below L/T; the paper's w=3 cannot hold at T=128, L=256.

    >>> progressive_counts(256, 32)[:6], progressive_counts(256, 32)[-2:]
    ((3, 4, 4, 4, 5, 5), (12, 13))
    """
    _check_steps(length, steps)
    if floor is None:
        floor = min(3, max(1, length // steps - 1))
    if floor < 0 or floor * steps > length:
        raise InputError(
            f"floor={floor} over {steps} steps needs {floor * steps} tokens but the window has {length}; "
            f"use floor<={length // steps} or fewer steps"
        )
    if not (math.isfinite(power) and power >= 0):
        raise InputError(f"power={power} must be a number >= 0, or the counts would decrease")
    weights = [(step / steps) ** power for step in range(1, steps + 1)]
    rest = length - floor * steps
    shares = [rest * weight / sum(weights) for weight in weights]
    counts = [math.floor(share) for share in shares]
    # largest remainder; the later step wins a tie
    by_remainder = sorted(range(steps), key=lambda d: (shares[d] - counts[d], d), reverse=True)
    for step in by_remainder[: rest - sum(counts)]:
        counts[step] += 1
    return tuple(floor + count for count in sorted(counts))


def block_counts(length: int, steps: int, *, block: int, inner: Schedule = linear_counts) -> Counts:
    """Semi-autoregressive: the steps split evenly over blocks of `block` slots, `inner` inside each.

    >>> block_counts(8, 4, block=4)
    (2, 2, 2, 2)
    """
    if block < 1 or length % block:
        near = [size for size in range(1, length + 1) if length % size == 0]
        fix = ", ".join(str(size) for size in sorted(near, key=lambda size: abs(size - block))[:3])
        raise InputError(f"blocks of {block} do not divide a window of {length}; use for instance {fix}")
    blocks = length // block
    if steps < 1 or steps % blocks:
        raise InputError(
            f"{steps} steps do not split evenly over {blocks} blocks of {block}; "
            f"use a multiple of {blocks}, for instance {max(1, round(steps / blocks)) * blocks}"
        )
    return inner(block, steps // blocks) * blocks


def dream_counts(length: int, steps: int, *, eps: float = 1e-3) -> Counts:
    """Dream's rule: t runs from 1 to eps, int(masks * (1 - s/t)) at each step, what is left at the last.

    The truncation makes the first steps short, and the arithmetic is float32 as in the published program.

    >>> dream_counts(256, 32)[:3], dream_counts(256, 32)[-1]
    ((7, 8, 8), 9)
    """
    _check_steps(length, steps)
    counts, left = [], length
    for step in range(1, steps):
        counts.append(int(torch.tensor(left, dtype=torch.float32) * dream_share(step, steps, eps=eps)))
        left -= counts[-1]
    return (*counts, left)


def dream_share(step: int, steps: int, *, eps: float = 1e-3) -> Tensor:
    """The share 1 - s/t of the masks that Dream reveals at a step, a float32 number; 1 at the last step."""
    if not 0 < eps < 1:
        raise InputError(f"eps={eps} must lie between 0 and 1")
    if step >= steps:
        return torch.tensor(1.0)
    times = torch.linspace(1, eps, steps + 1)
    return 1 - times[step] / times[step - 1]


def one_by_one(length: int, steps: int) -> Counts:
    """At least one at every step, for rules that decide the number themselves; `steps` only bounds them from above.

    >>> one_by_one(5, 3)
    (1, 1, 3)
    """
    _check_steps(length, steps)
    return (1,) * (steps - 1) + (length - steps + 1,)


def all_at_the_end(length: int, steps: int) -> Counts:
    """No lower bound until the last step, which takes what is left; for rules that may reveal nothing at a step."""
    _check_steps(length, steps)
    return (0,) * (steps - 1) + (length,)


def check_counts(counts: Sequence[int], length: int) -> None:
    """Refuse counts that do not fill the window."""
    if not counts or min(counts) < 0:
        raise InputError(f"counts must be one or more numbers >= 0, not {list(counts)[:8]}")
    if sum(counts) != length:
        raise InputError(f"counts sum to {sum(counts)} but the window has {length} open slots; they must be equal")


def _check_steps(length: int, steps: int) -> None:
    if length < 1:
        raise InputError(f"length={length} must be at least 1")
    if not 1 <= steps <= length:
        raise InputError(
            f"steps={steps} must lie between 1 and the number of tokens to reveal, {length}; "
            f"use steps<={length} or a longer window"
        )
