"""What a backbone is: two verbs and a few facts. An adapter owns its attention mask, positions and prediction shift."""

# B batch, S canvas, L open slots, M rows of the head, D hidden, V vocabulary
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Backbone(Protocol):
    """A masked diffusion model without its text."""

    @property
    def mask_id(self) -> int:
        """The token that stands for an open slot."""

    @property
    def end_ids(self) -> tuple[int, ...]:
        """The tokens that end an answer: first the one that fills the rest of a window, then the end of a turn."""

    @property
    def banned(self) -> tuple[int, ...]:
        """Tokens that are never committed: the mask, and rows of the vocabulary that have no token."""

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""

    @property
    def hidden_size(self) -> int:
        """Width of a state."""

    @property
    def context(self) -> int:
        """The longest canvas the model was made for."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""

    def encode(
        self,
        tokens: Int[Tensor, "B S"],
        lengths: Sequence[int],
        slots: Int[Tensor, "B L"],
    ) -> Float[Tensor, "B L D"]:
        """The final states (after the last norm) that predict the canvas positions in `slots`.

        Row b consists of the first `lengths[b]` tokens, at positions 0, 1, 2, ...; what follows is padding.
        """

    def head(self, states: Float[Tensor, "M D"]) -> Float[Tensor, "M V"]:
        """Logits from states, in a new tensor."""
