"""The one transformer behind LLaDA, Dream and what follows them: bidirectional, pre-norm, rotary, SwiGLU, untied head.

The families differ in a config and in the names of their weights (llada.py, dream.py). The query/key/value and gate/up
projections are each one matrix, and the last layer computes queries and MLP only for the states that are asked for.
"""

# B batch, S canvas, Q queries (1: the same for all), L open slots, M rows, D hidden, H heads, K key/value heads, E head size,
# V vocabulary
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from unmask.errors import InputError


@dataclass(frozen=True)
class TransformerConfig:
    """Everything that a forward pass depends on."""

    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    mlp_size: int
    norm_eps: float
    rope_theta: float
    context: int
    mask_id: int
    end_ids: tuple[int, ...]
    """The fill token first."""
    qkv_bias: bool = False
    shifted: bool = False
    """True if the state at i predicts position i + 1 (Dream); position 0 is then predicted by its own state."""

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.heads

    def __post_init__(self) -> None:
        if self.hidden_size % self.heads or self.heads % self.kv_heads or self.head_size % 2:
            raise InputError(
                f"hidden_size={self.hidden_size} must be a multiple of heads={self.heads} with an even head size, "
                f"and heads a multiple of kv_heads={self.kv_heads}"
            )
        if self.mask_id in self.end_ids:
            raise InputError(f"token {self.mask_id} is both the mask and an end token")
        for token in (self.mask_id, *self.end_ids):
            if not 0 <= token < self.vocab_size:
                raise InputError(f"special token {token} lies outside the vocabulary of {self.vocab_size}")


class Layer(nn.Module):
    """x + attention(norm(x)), then y + mlp(norm(y))."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        size, width = config.hidden_size, config.head_size
        self.attn_norm = nn.RMSNorm(size, eps=config.norm_eps)
        self.qkv = nn.Linear(size, (config.heads + 2 * config.kv_heads) * width, bias=config.qkv_bias)
        self.attn_out = nn.Linear(size, size, bias=False)
        self.mlp_norm = nn.RMSNorm(size, eps=config.norm_eps)
        self.gate_up = nn.Linear(size, 2 * config.mlp_size, bias=False)
        self.down = nn.Linear(config.mlp_size, size, bias=False)

    def forward(
        self,
        x: Float[Tensor, "B S D"],
        rope: Float[Tensor, "2 S E"],
        *,
        mask: Bool[Tensor, "B 1 Q S"] | None = None,
        rows: Int[Tensor, "B L"] | None = None,
    ) -> Float[Tensor, "B L D"]:
        """The layer's output at all positions, or only at `rows`; every position is attended to either way."""
        normed = self.attn_norm(x)
        if rows is None:
            query, key, value = self._split(self.qkv(normed))
            query = rotate(query, rope[:, None])
        else:
            cut = self.config.heads * self.config.head_size
            weight, bias = self.qkv.weight, self.qkv.bias
            chosen = rows[..., None].expand(-1, -1, x.shape[-1])
            x, here = x.gather(1, chosen), normed.gather(1, chosen)
            query = self._heads(F.linear(here, weight[:cut], None if bias is None else bias[:cut]))
            query = rotate(query, rope[:, rows][:, :, None])
            rest = F.linear(normed, weight[cut:], None if bias is None else bias[cut:])
            key, value = (self._heads(part) for part in rest.chunk(2, dim=-1))
        key = rotate(key, rope[:, None])
        if self.config.kv_heads != self.config.heads:
            shared = self.config.heads // self.config.kv_heads
            key, value = (part.repeat_interleave(shared, dim=1) for part in (key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.attn_out(mixed.transpose(1, 2).flatten(2))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)

    def _heads(self, flat: Float[Tensor, "B S W"]) -> Float[Tensor, "B H S E"]:
        return flat.unflatten(-1, (-1, self.config.head_size)).transpose(1, 2)

    def _split(self, flat: Float[Tensor, "B S W"]) -> tuple[Tensor, Tensor, Tensor]:
        kv = self.config.kv_heads * self.config.head_size
        query, key, value = flat.split([flat.shape[-1] - 2 * kv, kv, kv], dim=-1)
        return self._heads(query), self._heads(key), self._heads(value)


class Transformer(nn.Module):
    """A masked diffusion transformer; implements Backbone."""

    def __init__(self, config: TransformerConfig, *, banned: Sequence[int] | None = None) -> None:
        super().__init__()
        self.config = config
        self.banned = (config.mask_id,) if banned is None else tuple(banned)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self._ropes: dict[tuple[int, torch.device], Tensor] = {}

    @property
    def mask_id(self) -> int:
        """The token that stands for an open slot."""
        return self.config.mask_id

    @property
    def end_ids(self) -> tuple[int, ...]:
        """The fill token, then the end of a turn."""
        return self.config.end_ids

    @property
    def vocab_size(self) -> int:
        """Rows of the head."""
        return self.config.vocab_size

    @property
    def hidden_size(self) -> int:
        """The width of a state."""
        return self.config.hidden_size

    @property
    def context(self) -> int:
        """The longest canvas."""
        return self.config.context

    @property
    def place(self) -> torch.device:
        """Where the weights are."""
        return self.lm_head.weight.device

    @property
    def device(self) -> torch.device:
        """Where callers keep their tensors: beside the weights, but on the CPU for mps, which has no float64."""
        return torch.device("cpu") if self.place.type == "mps" else self.place

    @property
    def dtype(self) -> torch.dtype:
        """The weights' dtype."""
        return self.lm_head.weight.dtype

    def encode(self, tokens: Int[Tensor, "B S"], lengths: Sequence[int], slots: Int[Tensor, "B L"]) -> Float[Tensor, "B L D"]:
        """See Backbone.encode. No attention mask is built unless a row has padding."""
        tokens, slots = tokens.to(self.place), slots.to(self.place)
        if self.config.shifted:
            slots = (slots - 1).clamp_min(0)
        width = tokens.shape[1]
        mask = None
        if any(length < width for length in lengths):
            valid = torch.tensor(lengths, device=tokens.device)[:, None]
            mask = (torch.arange(width, device=tokens.device) < valid)[:, None, None]
        x = self.embed(tokens)
        rope = self.rope(width)
        *body, last = self.layers
        for layer in body:
            x = layer(x, rope, mask=mask)
        return self.norm(last(x, rope, mask=mask, rows=slots)).to(self.device)

    def head(self, states: Float[Tensor, "M D"]) -> Float[Tensor, "M V"]:
        """Logits in the weights' dtype."""
        return self.lm_head(states.to(self.place)).to(self.device)

    def rope(self, length: int) -> Float[Tensor, "2 S E"]:
        """Rotary cosines and sines of positions 0..length-1, float32, from angles in float64; kept between calls."""
        capacity = max(256, 1 << (length - 1).bit_length())
        key = (capacity, self.place)
        if key not in self._ropes:
            half = torch.arange(0, self.config.head_size, 2, dtype=torch.float64) / self.config.head_size
            angles = torch.outer(torch.arange(capacity, dtype=torch.float64), self.config.rope_theta**-half)
            table = torch.stack([angles.cos(), angles.sin()]).repeat(1, 1, 2)
            self._ropes[key] = table.float().to(self.place)
        return self._ropes[key][:, :length]


def rotate(x: Float[Tensor, "B H S E"], rope: Float[Tensor, "2 ..."]) -> Float[Tensor, "B H S E"]:
    """Rotary embedding in the rotate-half layout, computed in float32."""
    cosine, sine = rope
    low, high = x.float().chunk(2, dim=-1)
    turned = torch.cat([-high, low], dim=-1)
    return (x.float() * cosine + turned * sine).to(x.dtype)
