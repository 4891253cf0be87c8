"""What the backbone predicts at the open slots, each quantity computed at most once and only when a rule asks.

The head runs for the rows that are asked for, never for the whole canvas. One pass over a row's logits keeps what every
ranking rule and EOS policy needs in O(1): the two best tokens, the sum of the rest beside the best, and the end tokens' logits.

Every tensor here is computed one canvas row at a time. The bits of a matrix product depend on its number of rows, so this
is what makes a row's numbers independent of its batch; a diffusion forward already is a product with hundreds of rows.
"""

# B batch, L open slots, M rows of the head, V vocabulary, D hidden, E end tokens
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmask.errors import RuleError

KEEP_BYTES = 8 * 2**20
"""A canvas row's float32 logits are kept for the step if they fit in this; else they are computed again when asked for."""
CHUNK_BYTES = 64 * 2**20
"""The head runs on chunks of a canvas row's slots, whose float32 logits take about this much."""

PRODUCT_ROWS = 16
"""Products get a multiple of this many rows: below, CPU libraries switch to kernels whose bits depend on the threads."""

RowFunction = Callable[[Float[Tensor, "M V"], int, Int[Tensor, " M"]], Float[Tensor, " M"] | Int[Tensor, " M"]]
"""Reduces logits [M, V] of canvas row b at slots [M] to one value a slot: f(logits, b, slots)."""


@runtime_checkable
class Head(Protocol):
    """What is needed of a backbone here. `head` returns a new tensor at every call."""

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""

    def head(self, states: Float[Tensor, "M D"]) -> Float[Tensor, "M V"]:
        """Logits from states."""


@dataclass(frozen=True, eq=False)
class Stats:
    """The predictions at every slot, reduced to what ranking needs.

    The vocabulary is split in the end tokens, whose logits `ends` are kept one by one, and all the others. An EOS policy
    returns Stats with other `ends`; everything below follows from it, without a second pass over the vocabulary. `token`
    is always the argmax of the raw logits: a policy changes the order, never the tokens.
    """

    token: Int[Tensor, "B L"]
    best_id: Int[Tensor, "B L"]
    best: Float[Tensor, "B L"]
    second_id: Int[Tensor, "B L"]
    second: Float[Tensor, "B L"]
    spread: Float[Tensor, "B L"]
    """The sum of exp(logit - best) over all tokens but `best_id` and the end tokens: small numbers keep their digits."""
    ends: Float[Tensor, "B L E"]
    end_ids: tuple[int, ...]
    rest_entropy: Callable[[], Float[Tensor, "B L"]]
    """The entropy of the distribution over all tokens but the end tokens; only computed when called."""

    @cached_property
    def rest(self) -> Float[Tensor, "B L"]:
        """log sum exp over all tokens but the end tokens."""
        return self.best + self.spread.log1p()

    @cached_property
    def logsumexp(self) -> Float[Tensor, "B L"]:
        """log sum exp over the whole vocabulary."""
        top = torch.maximum(self.rest, self.ends.amax(-1)) if self.end_ids else self.rest
        # exp and log give the same bits wherever an element lies in memory; torch.logaddexp does not
        total = (self.rest - top).exp()
        for index in range(len(self.end_ids)):
            total = total + (self.ends[..., index] - top).exp()
        return top + total.log()

    @cached_property
    def against(self) -> Float[Tensor, "B L"]:
        """The odds against `token`, (1 - p) / p, in float64: they tell slots apart whose p is 1 in float32."""
        chosen, is_best = self.chosen.double(), self.token == self.best_id
        odds = torch.where(is_best, self.spread.double(), (1 + self.spread.double()) * (self.best.double() - chosen).exp())
        for index, end_id in enumerate(self.end_ids):
            counts = (self.token != end_id) & (self.ends[..., index] > -torch.inf)
            odds = odds + torch.where(counts, (self.ends[..., index].double() - chosen).exp(), 0.0)
        return odds

    @cached_property
    def probability(self) -> Float[Tensor, "B L"]:
        """The probability of `token`, in float64."""
        return 1 / (1 + self.against)

    @cached_property
    def margin(self) -> Float[Tensor, "B L"]:
        """The probability of `token` minus that of the runner-up, in float64."""
        wanted = self.chosen > -torch.inf
        beside = torch.where(wanted, (self.other - self.chosen).double().exp(), 0.0)
        suppressed = -(self.other - self.logsumexp).double().exp()
        return torch.where(wanted, self.probability * (1 - beside), suppressed)

    @cached_property
    def chosen(self) -> Float[Tensor, "B L"]:
        """The logit of `token`."""
        logit = self.best
        for index, end_id in enumerate(self.end_ids):
            logit = torch.where(self.token == end_id, self.ends[..., index], logit)
        return logit

    @cached_property
    def entropy(self) -> Float[Tensor, "B L"]:
        """The entropy over the whole vocabulary, from that of the rest and the shares of the end tokens."""
        log_rest = self.rest - self.logsumexp
        total = torch.where(log_rest > -torch.inf, log_rest.exp() * (self.rest_entropy() - log_rest), 0.0)
        for index in range(len(self.end_ids)):
            log_end = self.ends[..., index] - self.logsumexp
            total = total - torch.where(log_end > -torch.inf, log_end.exp() * log_end, 0.0)
        return total

    @cached_property
    def end_mass(self) -> Float[Tensor, "B L"]:
        """The probability of all end tokens together."""
        total = torch.zeros_like(self.rest)
        for index in range(len(self.end_ids)):
            total = total + (self.ends[..., index] - self.logsumexp).exp()
        return total

    @cached_property
    def other(self) -> Float[Tensor, "B L"]:
        """The highest logit of all tokens but `token`."""
        return self._runner_up[0]

    @cached_property
    def other_id(self) -> Int[Tensor, "B L"]:
        """The token that `other` belongs to."""
        return self._runner_up[1]

    @cached_property
    def _runner_up(self) -> tuple[Tensor, Tensor]:
        is_best = self.token == self.best_id
        logit, token = torch.where(is_best, self.second, self.best), torch.where(is_best, self.second_id, self.best_id)
        for index, end_id in enumerate(self.end_ids):
            beats = (self.token != end_id) & (self.ends[..., index] > logit)
            logit, token = torch.where(beats, self.ends[..., index], logit), torch.where(beats, end_id, token)
        return logit, token

    def with_ends(self, ends: Float[Tensor, "B L E"]) -> "Stats":
        """The same predictions under other logits for the end tokens; for ranking only."""
        return replace(self, ends=ends)


def padded(slots: Int[Tensor, " M"]) -> Int[Tensor, " N"]:
    """The slots, the last one repeated up to a multiple of PRODUCT_ROWS."""
    return torch.cat([slots, slots[-1:].expand(-len(slots) % PRODUCT_ROWS)])


class Predictions:
    """The predictions of one step at the slots in `asked`, computed when first asked for."""

    def __init__(
        self,
        backbone: Head,
        states: Float[Tensor, "B L D"],
        asked: Bool[Tensor, "B L"],
        *,
        end_ids: Sequence[int],
        banned: Int[Tensor, " N"],
        previous: "Predictions | None" = None,
    ) -> None:
        self.backbone = backbone
        self.states = states
        self.asked = asked
        self.end_ids = tuple(end_ids)
        self.banned = banned
        self.previous = previous
        self._cut = False
        self._kept: dict[int, Tensor] = {}

    def over(self, asked: Bool[Tensor, "B L"]) -> "Predictions":
        """Predictions at other slots of the same step."""
        return Predictions(self.backbone, self.states, asked, end_ids=self.end_ids, banned=self.banned)

    @cached_property
    def stats(self) -> Stats:
        """Everything that ranking needs, in one pass; zeros at slots that were not asked for."""
        shape, device = self.asked.shape, self.asked.device
        names, kinds = ("token", "best_id", "second_id", "best", "second", "spread"), (torch.int64,) * 3 + (torch.float32,) * 3
        out = {name: torch.zeros(shape, dtype=kind, device=device) for name, kind in zip(names, kinds, strict=True)}
        ends = torch.full((*shape, len(self.end_ids)), -torch.inf, dtype=torch.float32, device=device)
        columns = torch.tensor(self.end_ids, dtype=torch.int64, device=device)
        for row, slots, logits in self._chunks(self.asked):
            end_logits = logits[:, columns]
            token = logits.argmax(-1)
            logits.index_fill_(1, columns, -torch.inf)
            best, best_id = logits.max(-1)
            logits.scatter_(1, best_id[:, None], -torch.inf)
            second, second_id = logits.max(-1)
            spread = (logits - best.clamp_min(torch.finfo(best.dtype).min)[:, None]).exp().sum(-1)
            for name, values in zip(names, (token, best_id, second_id, best, second, spread), strict=True):
                out[name][row, slots] = values
            ends[row, slots] = end_logits
            logits.scatter_(1, best_id[:, None], best[:, None])  # as it was: the logits may be kept
            logits.index_copy_(1, columns, end_logits)
        return Stats(**out, ends=ends, end_ids=self.end_ids, rest_entropy=self._rest_entropy)

    def _rest_entropy(self) -> Float[Tensor, "B L"]:
        return self._rest_entropies

    @cached_property
    def _rest_entropies(self) -> Float[Tensor, "B L"]:
        columns = torch.tensor(self.end_ids, dtype=torch.int64, device=self.asked.device)

        def entropy(logits: Tensor, row: int, slots: Tensor) -> Tensor:
            log_p = logits.index_fill(1, columns, -torch.inf).log_softmax(-1)
            return torch.special.entr(log_p.exp()).sum(-1)

        return self.map_logits(entropy, self.asked)

    @cached_property
    def divergence(self) -> Float[Tensor, "B L"]:
        """KL(p_d || p_{d-1}) against the step before, in float64; infinite at step 1."""
        before = self.previous
        if before is None and self._cut:
            raise RuleError("the divergence was not asked for in time, and the step before it is gone; ask during the step")
        if before is None:
            return torch.full(self.asked.shape, torch.inf, dtype=torch.float64, device=self.asked.device)

        def divergence(logits: Tensor, row: int, slots: Tensor) -> Tensor:
            p, q = logits.double().softmax(-1), before.logits_at(row, slots).double().softmax(-1)
            return (p * ((p + 1e-12).log() - (q + 1e-12).log())).sum(-1)

        return self.map_logits(divergence, self.asked, fill=torch.inf)

    def forget(self) -> None:
        """Let go of what no later step can need: its own logits, and the step before the one before it."""
        self._kept.clear()
        if self.previous is not None:
            self.previous.previous, self.previous._cut = None, True

    def map_logits(self, reduce: RowFunction, where: Bool[Tensor, "B L"], fill: float = 0.0) -> Tensor:
        """One number from the logits of each slot in `where`, and `fill` elsewhere.

        `reduce` gets float32 logits [M, V] that it must not change, the canvas row, and the slots [M]; for instance the
        full entropy is `lambda logits, row, slots: Categorical(logits=logits).entropy()`.
        """
        if (where & ~self.asked).any():
            raise RuleError("logits were asked for at a slot that this step does not predict; stay within view.masked")
        out: Tensor | None = None
        for row, slots, logits in self._chunks(where):
            values = reduce(logits, row, slots)
            if out is None:
                out = torch.full(where.shape, fill, dtype=values.dtype, device=where.device)
            out[row, slots] = values
        return torch.full(where.shape, fill, device=where.device) if out is None else out

    def _chunks(self, where: Bool[Tensor, "B L"]) -> Iterator[tuple[int, Tensor, Tensor]]:
        """(row, slots, logits) of the slots in `where`, one canvas row at a time."""
        bytes_per_slot = 4 * self.backbone.vocab_size
        for row in range(len(where)):
            slots = where[row].nonzero()[:, 0]
            if not len(slots):
                continue
            asked = self.asked[row].nonzero()[:, 0]
            if len(asked) * bytes_per_slot <= KEEP_BYTES:
                if row not in self._kept:
                    self._kept[row] = self.logits_at(row, asked)
                same = len(slots) == len(asked) and torch.equal(slots, asked)
                yield row, slots, self._kept[row] if same else self._kept[row][torch.searchsorted(asked, slots)]
            else:
                for part in torch.split(slots, max(1, CHUNK_BYTES // bytes_per_slot)):
                    yield row, part, self.logits_at(row, part)

    def logits_at(self, row: int, slots: Int[Tensor, " M"]) -> Float[Tensor, "M V"]:
        """Float32 logits of one canvas row at some slots, with the banned tokens at minus infinity."""
        logits = self.backbone.head(self.states[row, padded(slots)])[: len(slots)].float()
        return logits.index_fill_(1, self.banned, -torch.inf) if len(self.banned) else logits
