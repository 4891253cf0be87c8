"""A toy backbone: a table of logits plus a bonus for revealed neighbours, for tests, documentation and demos.

It knows one sentence. Like the big models it is surest of the end-of-sequence token, at the end of the window first, and a
revealed token makes its neighbours surer; so decoding it by confidence alone loses the sentence from the end, the more so
the more steps it is given. It takes no weights and no time, and all its arithmetic is element by element.
"""

# B batch, S canvas, L open slots, V vocabulary (states are the logits themselves, so D = V)
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmask.rng import mix, subkey, uniform

SENTENCE = "First write what you know best; leave the end for the end, and the rest will follow."


class ToyBackbone:
    """A backbone over single characters that wants to write `sentence` into its window."""

    def __init__(self, sentence: str = SENTENCE, *, device: torch.device | str = "cpu") -> None:
        self.characters = [chr(code) for code in range(32, 127)]
        self.mask_id, eos_id, turn_id = (len(self.characters) + offset for offset in range(3))
        self.end_ids = (eos_id, turn_id)
        self.vocab_size = self.hidden_size = len(self.characters) + 4  # the last row has no token
        self.banned = (self.mask_id, self.vocab_size - 1)
        self.context = 4096
        self.device = torch.device(device)
        self.sentence = torch.tensor(self.ids(sentence), device=self.device)

    def ids(self, text: str) -> list[int]:
        """Characters to ids; a character outside printable ASCII becomes a question mark."""
        return [ord(char) - 32 if 32 <= ord(char) < 127 else ord("?") - 32 for char in text]

    def spell(self, tokens: Int[Tensor, " L"]) -> str:
        """Ids to text: an end token prints as nothing, a mask as an underscore."""
        return "".join(
            self.characters[token] if token < self.mask_id else "_" if token == self.mask_id else ""
            for token in tokens.tolist()
        )

    def encode(self, tokens: Int[Tensor, "B S"], lengths: Sequence[int], slots: Int[Tensor, "B L"]) -> Float[Tensor, "B L D"]:
        """The logits of every open slot; see the module's first lines for what they do."""
        ends = torch.tensor(lengths, device=tokens.device)[:, None]
        left, right = (tokens.gather(1, (slots + by).clamp(0, tokens.shape[1] - 1)) for by in (-1, 1))
        outside = slots + 1 >= ends
        left_known = (left != self.mask_id) & (slots > 0) & (left < self.mask_id)
        right_known = (right < self.mask_id) & ~outside
        right_ended = outside | (right == self.end_ids[0])
        offset = slots - slots[:, :1]
        share = offset.float() / (ends - slots[:, :1]).float()
        # a table of noise that depends on what comes before the first slot
        prefix = torch.stack([mix(row[: int(first)].sum()[None])[0] for row, first in zip(tokens, slots[:, 0], strict=True)])
        key = subkey(prefix[:, None], offset)
        noise = uniform(subkey(key[..., None], torch.arange(self.vocab_size, device=tokens.device))).float() - 0.5
        written = offset < len(self.sentence)
        wanted = torch.where(written, self.sentence[offset.clamp(max=len(self.sentence) - 1)], self.end_ids[0])
        sure = 3.0 + 1.5 * uniform(key).float() + 2.0 * left_known.float() + right_known.float()
        ended = torch.where(written, 1.5 * share, 6.0 + share) + 5.0 * right_ended.float()
        logits = noise.scatter_add(2, wanted[..., None], (sure * written)[..., None])
        logits[..., self.end_ids[0]] += ended
        return logits

    def head(self, states: Float[Tensor, "M D"]) -> Float[Tensor, "M V"]:
        """The states are the logits."""
        return states.clone()
