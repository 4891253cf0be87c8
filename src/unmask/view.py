"""What a rule sees of a step, and what it answers."""

# B batch, L open slots, D hidden
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmask.predictions import Predictions, Stats
from unmask.rng import Stream, subkey, uniform


@dataclass(frozen=True, eq=False)
class View:
    """One step of a batch, as seen by a selection rule, an EOS policy or a token choice.

    All [B, L] tensors run over the open slots of a row, from left to right; `slots` says where in the canvas they lie.
    A rule must not modify anything in here. Predictions are computed when first asked for, and only at `masked`.
    """

    step: int
    """1-based."""
    steps: Int[Tensor, " B"]
    count: Int[Tensor, " B"]
    """How many slots to reveal in each row; 0 for a row that is finished."""
    masked: Bool[Tensor, "B L"]
    """The slots that may be revealed."""
    window: Int[Tensor, "B L"]
    """The tokens in the open slots: the mask where nothing was revealed yet."""
    mask_id: int
    slots: Int[Tensor, "B L"]
    """Where in the canvas each open slot lies."""
    open: Bool[Tensor, "B L"]
    keys: Int[Tensor, " B"]
    lengths: Int[Tensor, " B"]
    """How long each row's canvas is."""
    predictions: Predictions
    start: Int[Tensor, " B"]
    """The first slot of the current block; 0 without blocks."""

    @property
    def stats(self) -> Stats:
        """The reduced predictions, under the raw logits."""
        return self.predictions.stats

    @property
    def hidden(self) -> Float[Tensor, "B L D"]:
        """The final states that predict the open slots (after the last norm, after Dream's shift)."""
        return self.predictions.states

    @property
    def progress(self) -> Float[Tensor, "B 1"]:
        """d/T of every row, in float64."""
        return (self.step / self.steps.double())[:, None]

    def noise(self, stream: Stream) -> Float[Tensor, "B L"]:
        """Uniform numbers keyed by (row key, step, stream, canvas position)."""
        return uniform(subkey(self.keys[:, None], self.step, int(stream), self.slots))

    @property
    def known(self) -> Bool[Tensor, "B S"]:
        """For every position of the canvas, whether it holds a token: fixed text and revealed slots, but no padding."""
        width = int(self.lengths.max())
        inside = torch.arange(width, device=self.slots.device) < self.lengths[:, None]
        hidden = torch.zeros(len(inside), width + 1, dtype=torch.bool, device=inside.device)
        still = self.open & (self.window == self.mask_id)
        return inside & ~hidden.scatter(1, torch.where(still, self.slots, width), still)[:, :width]

    def among(self, masked: Bool[Tensor, "B L"], count: Int[Tensor, " B"], start: Int[Tensor, " B"]) -> "View":
        """The same step with fewer slots to choose from; the predictions are shared."""
        return replace(self, masked=masked, count=count, start=start)

    def everywhere(self) -> "View":
        """The same step with every open slot in `masked`, revealed ones too: for rules that may mask again."""
        return replace(self, masked=self.open, predictions=self.predictions.over(self.open))


@dataclass(frozen=True, eq=False)
class Choice:
    """What a rule answers: the slots to reveal, the score it went by, and (rarely) the slots to mask again."""

    reveal: Bool[Tensor, "B L"]
    score: Float[Tensor, "B L"] | None = None
    """Only for the record: exact ties at the cut are counted in it."""
    hide: Bool[Tensor, "B L"] | None = None
    """Revealed slots that become masks again (P2); disjoint from `reveal`."""


@dataclass(frozen=True, eq=False)
class Step:
    """One denoising step, done: what the loop yields."""

    view: View
    choice: Choice
    window: Int[Tensor, "B L"]
    """The tokens in the open slots after the step."""
    forwards: tuple[int, ...]
    """Backbone passes so far, a row."""

    @property
    def step(self) -> int:
        """The step's number, from 1."""
        return self.view.step
