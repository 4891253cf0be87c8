"""Rules that decide themselves how many slots to reveal. `count` is their lower bound, so they finish in T steps or earlier.

With counts from `one_by_one` they are the published rules, which always reveal at least one slot a step.
"""

# B batch, L open slots
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unmask.counts import dream_share
from unmask.errors import InputError
from unmask.pick import Pick, greedy
from unmask.ranking import Rank, raw
from unmask.rng import Stream
from unmask.scores import Score, negative_entropy, top1_probability
from unmask.selection import Select, ordered
from unmask.view import Choice, View


def above(threshold: float, score: Score = top1_probability, *, rank: Rank = raw) -> Select:
    """Every slot whose score reaches the threshold (Fast-dLLM: 0.9 on the top-1 probability)."""

    def select(view: View) -> Choice:
        scores = score(view, rank(view))
        return at_least(view, scores, scores >= threshold)

    return select


def by_factor(factor: float, score: Score = top1_probability, *, rank: Rank = raw) -> Select:
    """The n-th surest slot is revealed while its score is at least 1 - factor / (n + 1) (Fast-dLLM's factor rule)."""
    if not factor > 0:
        raise InputError(f"factor={factor} must be greater than 0")

    def select(view: View) -> Choice:
        scores = score(view, rank(view))
        place = ordered(scores, view.masked)
        passes = (place == 0) | (scores >= 1 - factor / (place + 2))
        return at_least(view, scores, _leading(passes, place))

    return select


def entropy_bounded(gamma: float, *, rank: Rank = raw) -> Select:
    """EB-sampler: the surest slots while the sum of their entropies, without the largest, stays within gamma."""
    if not gamma >= 0:
        raise InputError(f"gamma={gamma} must be at least 0")

    def select(view: View) -> Choice:
        scores = negative_entropy(view, rank(view))
        place = ordered(scores, view.masked)
        entropy = torch.where(view.masked, -scores, 0.0).double()
        in_order = torch.zeros_like(entropy).scatter(1, place, entropy)
        # in rising order the largest is the last, so the sum without it is what came before
        before = in_order.cumsum(-1) - in_order
        within = (before <= gamma).gather(1, place)
        return at_least(view, scores, _leading(within, place))

    return select


def stable(confidence: float, divergence: float, *, history: int = 2, rank: Rank = raw) -> Select:
    """KLASS: slots that are sure and whose prediction has stopped moving, KL below `divergence` in the last steps."""
    if not (0 <= confidence <= 1 and divergence > 0):
        raise InputError(f"confidence={confidence} must lie between 0 and 1, and divergence={divergence} above 0")
    if history not in (1, 2):
        raise InputError(f"history={history} must be 1 or 2")

    def select(view: View) -> Choice:
        scores = top1_probability(view, rank(view))
        calm = view.predictions.divergence < divergence
        if history == 2:
            before = view.predictions.previous
            calm = calm & (torch.zeros_like(calm) if before is None else before.divergence < divergence)
        return at_least(view, scores, calm & (scores > confidence))

    return select


def self_planned(pick: Pick = greedy) -> Select:
    """P2 with the model as its own planner, the one rule that masks again.

    Every open slot is predicted anew, revealed ones too, and scored by the probability of the token picked for it. The
    floor(N * (1 - d/T)) least sure of all N are masked after the step, whatever they were before. Use it with
    `all_at_the_end` counts: it keeps its own.
    """

    def select(view: View) -> Choice:
        everything = view.everywhere()
        token = pick(everything, view.open)

        def log_probability(logits: Tensor, row: int, slots: Tensor) -> Tensor:
            return logits.double().log_softmax(-1).gather(1, token[row, slots][:, None])[:, 0]

        score = everything.predictions.map_logits(log_probability, view.open)
        number, steps = view.open.sum(-1), view.steps
        kept = ordered(score, view.open) < (number - number * (steps - view.step) // steps)[:, None]
        return Choice(view.masked & kept, score, hide=view.open & ~view.masked & ~kept)

    return select


def origin(*, eps: float = 1e-3) -> Select:
    """Dream's `origin`: every masked slot is revealed with probability 1 - s/t, all that are left at the last step."""

    def select(view: View) -> Choice:
        share = torch.stack([dream_share(view.step, int(steps), eps=eps) for steps in view.steps])
        noise = view.noise(Stream.REVEAL)
        return at_least(view, -noise, noise < share.to(noise.device)[:, None])

    return select


def at_least(view: View, score: Float[Tensor, "B L"], wanted: Bool[Tensor, "B L"]) -> Choice:
    """The wanted slots among the masked ones, and the best others if they are fewer than the step's count."""
    wanted = view.masked & wanted
    urgent = torch.where(wanted, torch.inf, score)  # what is wanted anyway counts towards the minimum
    floor = ordered(urgent, view.masked) < view.count[:, None]
    return Choice(wanted | (floor & view.masked), score)


def _leading(passes: Bool[Tensor, "B L"], place: Tensor) -> Bool[Tensor, "B L"]:
    """The slots that pass and before which, in order of their place, every slot passes."""
    in_order = torch.zeros_like(passes).scatter(1, place, passes)
    return in_order.cumprod(-1).bool().gather(1, place)
