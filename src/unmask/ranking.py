"""EOS policies: the predictions as the ranking sees them. The committed token is always the raw argmax.

A policy is a function from a View to Stats whose end-token logits are changed; everything else follows in O(1).
"""

# B batch, L open slots, E end tokens
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from unmask.errors import InputError, unknown
from unmask.predictions import Stats
from unmask.view import View

Rank = Callable[[View], Stats]
ANNEAL_RULES = ("damp", "divide", "power")


def raw(view: View) -> Stats:
    """No policy: rank by what the model predicts."""
    return view.stats


def eos_annealed(*, start: float = 3.0, end: float = 1.0, rule: str = "damp", ids: Sequence[int] | None = None) -> Rank:
    """Scale the end token's logit by a temperature that runs from `start` to `end` (section 4 of the paper).

    lambda_d = end + (start - end) * (1 - d/T). Rules: `divide` is the paper to the letter, z / lambda, which raises a
    negative logit; `damp` divides a positive logit and multiplies a negative one, so it never promotes; `power` multiplies
    the log-probability. `ids` defaults to the token that the model fills with.
    """
    if rule not in ANNEAL_RULES:
        raise unknown("anneal rule", rule, ANNEAL_RULES)
    if start <= 0 or end <= 0:
        raise InputError(f"EOS temperatures must be positive, not start={start}, end={end}; 1 changes nothing")

    def rank(view: View) -> Stats:
        stats = view.stats
        temperature = (end + (start - end) * (1 - view.progress))[..., None].to(stats.ends.dtype)
        if rule == "power":
            total = stats.logsumexp[..., None]
            scaled = total + temperature * (stats.ends - total)
        elif rule == "damp":
            scaled = torch.where(stats.ends > 0, stats.ends / temperature, stats.ends * temperature)
        else:
            scaled = stats.ends / temperature
        return stats.with_ends(torch.where(_columns(stats, ids), scaled, stats.ends))

    return rank


def eos_suppressed(ids: Sequence[int] | None = None) -> Rank:
    """Rank as if the end tokens could not occur: a slot that wants one has probability 0 (LLaDA's `confidence_eos_eot_inf`).

    `ids` defaults to all the end tokens of the model. They are still revealed, last.
    """

    def rank(view: View) -> Stats:
        stats = view.stats
        chosen = _columns(stats, stats.end_ids if ids is None else ids)
        return stats.with_ends(torch.where(chosen, -torch.inf, stats.ends))

    return rank


def eos_penalized(penalty: float, *, ids: Sequence[int] | None = None, eps: float = 1e-3) -> Rank:
    """Add penalty * log(1 - t + eps) to the end token's logit, t running from 1 to eps (Dream-Coder's `eos_penalty`).

    The penalty starts at penalty * log(eps) and fades. Here it acts on the ranking alone; Dream-Coder's own program also
    writes tokens from the penalised logits.
    """
    if not penalty >= 0:
        raise InputError(f"penalty={penalty} must be a number >= 0; 0 changes nothing")

    def rank(view: View) -> Stats:
        stats = view.stats
        time = 1 - (1 - eps) * (view.step - 1) / view.steps.double()
        shift = (penalty * (1 - time + eps).log())[:, None, None].to(stats.ends.dtype)
        return stats.with_ends(torch.where(_columns(stats, ids), stats.ends + shift, stats.ends))

    return rank


def _columns(stats: Stats, ids: Sequence[int] | None) -> Bool[Tensor, " E"]:
    """Which of the end tokens are meant; the first, the one that fills, by default."""
    if not stats.end_ids:
        raise InputError("this backbone names no end token, so there is nothing for an EOS policy to act on")
    wanted = stats.end_ids[:1] if ids is None else tuple(ids)
    missing = [token for token in wanted if token not in stats.end_ids]
    if missing:
        raise InputError(f"token {missing[0]} is not among the end tokens {stats.end_ids}; name one of them")
    return torch.tensor([token in wanted for token in stats.end_ids], device=stats.ends.device)
