"""The canvas: token rows with open slots, of any length and anywhere, in one batch.

Raw text, chat and infill are one thing here: some positions are fixed, the others are open slots.
"""

# B batch, S longest row, L most open slots of a row
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from unmask.errors import InputError
from unmask.rng import row_keys

OPEN = -1
"""Stands for an open slot in the rows that `Canvas.of` takes."""


@dataclass(frozen=True, eq=False)
class Canvas:
    """Rows of fixed tokens with open slots; what a decode starts from.

    Rows are padded on the right and every row keeps its own positions 0, 1, 2, ..., so that its neighbours in the
    batch cannot move it. `slots` lists the open positions of a row from left to right; `open` is False on padding.
    """

    tokens: Int[Tensor, "B S"]
    lengths: tuple[int, ...]
    holes: tuple[int, ...]
    """How many open slots each row has."""
    slots: Int[Tensor, "B L"]
    open: Bool[Tensor, "B L"]
    keys: Int[Tensor, " B"]

    @staticmethod
    def of(
        rows: Sequence[Sequence[int]],
        *,
        seeds: Sequence[int | tuple[int, int]] | None = None,
        device: torch.device | str = "cpu",
    ) -> "Canvas":
        """Build a canvas from rows of token ids in which `OPEN` marks the open slots.

        >>> Canvas.of([[7, OPEN, OPEN], [7, 8, 9, OPEN]]).slots
        tensor([[1, 2],
                [3, 0]])
        """
        if not rows:
            raise InputError("a canvas needs at least one row")
        for index, row in enumerate(rows):
            if min(row, default=0) < OPEN:
                raise InputError(f"row {index} holds token {min(row)}; ids are 0 or more, and OPEN marks an open slot")
        slots = [[i for i, token in enumerate(row) if token == OPEN] for row in rows]
        for index, row_slots in enumerate(slots):
            if not row_slots:
                raise InputError(f"row {index} has no open slot: give it a window or a hole to fill")
        if seeds is None:
            seeds = [0] * len(rows)
        if len(seeds) != len(rows):
            raise InputError(f"{len(seeds)} seeds for {len(rows)} rows; give one seed a row")
        tokens = _padded([[0 if token == OPEN else token for token in row] for row in rows])
        lengths = tuple(len(row) for row in rows)
        return Canvas(
            tokens=tokens.to(device),
            lengths=lengths,
            holes=tuple(len(row) for row in slots),
            slots=_padded(slots).to(device),
            open=_padded([[1] * len(row) for row in slots]).bool().to(device),
            keys=row_keys(seeds, device),
        )

    def masked(self, mask_id: int) -> Int[Tensor, "B L"]:
        """The open slots at the start of a decode: the mask everywhere, 0 on padding."""
        return torch.where(self.open, mask_id, 0)

    def filled(self, window: Int[Tensor, "B L"]) -> Int[Tensor, "B S"]:
        """The whole rows with these tokens in the open slots."""
        spare = self.tokens.shape[1]  # padding writes into a column that is cut off again
        wide = torch.cat([self.tokens, self.tokens[:, :1]], dim=1)
        return wide.scatter(1, torch.where(self.open, self.slots, spare), window)[:, :spare]


def _padded(rows: Sequence[Sequence[int]]) -> Int[Tensor, "B S"]:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=torch.int64)
