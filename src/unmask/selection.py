"""Which slots to reveal: rules are functions from a View to a Choice, and combinators put them together.

Every rule keeps the laws of tests/laws: at least `count` slots a row (exactly, unless the rule is adaptive), only masked
ones, no row looks at another, and nothing that it was given is modified. Ties go to the leftmost slot.
"""

# B batch, L open slots
from collections.abc import Callable, Sequence
from numbers import Integral

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmask.errors import InputError
from unmask.ranking import Rank, raw
from unmask.rng import Stream
from unmask.scores import Score
from unmask.view import Choice, View

Select = Callable[[View], Choice]


def ordered(score: Float[Tensor, "B L"], masked: Bool[Tensor, "B L"]) -> Int[Tensor, "B L"]:
    """The place of every slot in the order of falling score, from 0; masked slots come first, ties from the left.

    >>> ordered(torch.tensor([[0.5, 0.9, 0.9]]), torch.tensor([[True, True, True]]))
    tensor([[2, 0, 1]])
    """
    lowest = torch.finfo(score.dtype).min
    key = torch.where(masked, score.nan_to_num(nan=lowest, neginf=lowest), -torch.inf)
    return key.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)


def highest(score: Float[Tensor, "B L"], view: View) -> Bool[Tensor, "B L"]:
    """The `view.count` masked slots of each row with the highest score."""
    return ordered(score, view.masked) < view.count[:, None]


def top_by(score: Score, *, rank: Rank = raw) -> Select:
    """Reveal the slots with the highest score; `rank` is the EOS policy.

    >>> from unmask import top_by, top1_probability, eos_annealed
    >>> select = top_by(top1_probability, rank=eos_annealed(start=3.0))
    """

    def select(view: View) -> Choice:
        scores = score(view, rank(view))
        return Choice(highest(scores, view), scores)

    return select


def uniform() -> Select:
    """Reveal slots chosen uniformly ("ancestral"), from each row's own key."""

    def select(view: View) -> Choice:
        noise = view.noise(Stream.ORDER)
        return Choice(highest(noise, view), noise)

    return select


def fixed(positions: Sequence[int] | Sequence[Sequence[int]]) -> Select:
    """Reveal these slots (0 is the first open one): one list for all rows, or one for each row.

    For replays and anchored continuations: `at_step(1, fixed([0, 7, 9]), otherwise=...)`.
    """
    one = [int(slot) for slot in positions if isinstance(slot, Integral)]
    each = [[int(slot) for slot in row] for row in positions if isinstance(row, Sequence)]
    if one and each:
        raise InputError("positions must be a list of integers, or a list of such lists, one for each row")

    def select(view: View) -> Choice:
        wanted = each or [one] * len(view.masked)
        if len(wanted) != len(view.masked):
            raise InputError(f"positions for {len(wanted)} rows, but the batch has {len(view.masked)}")
        reveal = torch.zeros_like(view.masked)
        for row, slots in enumerate(wanted):
            for slot in slots:
                if not 0 <= slot < view.masked.shape[1] or not view.masked[row, slot]:
                    raise InputError(f"slot {slot} of row {row} is not masked at step {view.step}, it cannot be revealed")
            reveal[row, slots] = True
        return Choice(reveal)

    return select


def at_step(step: int, then: Select, *, otherwise: Select) -> Select:
    """At this step do one thing, at all others another: `at_step(1, uniform(), otherwise=top_by(...))`."""
    if step < 1:
        raise InputError(f"step={step}: steps count from 1")

    def select(view: View) -> Choice:
        return then(view) if view.step == step else otherwise(view)

    return select


def in_blocks(size: int, select: Select) -> Select:
    """Semi-autoregressive: blocks of `size` open slots from left to right, `select` inside the current one.

    A step whose count reaches past the current block finishes that block and chooses the rest in the next; with counts
    from `block_counts` that never happens.
    """
    if size < 1:
        raise InputError(f"size={size} must be at least 1")

    def select_in_block(view: View) -> Choice:
        block = torch.arange(view.masked.shape[1], device=view.masked.device) // size
        reached = view.masked & (view.masked.cumsum(-1) >= view.count.clamp_min(1)[:, None])
        first = torch.where(reached, block, block.shape[0]).amin(-1, keepdim=True)
        before, inside = view.masked & (block < first), view.masked & (block == first)
        left = (view.count - before.sum(-1)).clamp_min(0)
        choice = select(view.among(inside, left, first[:, 0] * size))
        score = None if choice.score is None else torch.where(inside, choice.score, torch.nan)
        return Choice(choice.reveal | before, score, choice.hide)

    return select_in_block
