"""What a published family of checkpoints says: how to read its config.json, and how it names its weights."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from unmask.backbones.transformer import TransformerConfig
from unmask.errors import CheckpointError

LARGEST = 10_000_000
"""No size in a config.json is larger than this, unless it is damaged."""


@dataclass(frozen=True)
class Weight:
    """One published tensor: it fills rows `start` and following of our parameter `target`."""

    name: str
    target: str
    start: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Family:
    """One line of the table in backbones/__init__.py."""

    name: str
    model_types: tuple[str, ...]
    """`model_type` values in config.json that belong to it."""
    config: Callable[[Mapping[str, Any], Mapping[str, int]], TransformerConfig]
    """config.json, and the ids of the special tokens by name (empty without tokenizer files), to a config."""
    names: Mapping[str, str]
    """Our part -> published name; `{i}` is the layer. See `weights` for the parts."""
    published: Mapping[str, str] = field(default_factory=dict)
    """Hub id -> a word about it, for `unmask models`."""

    def parameters(self, config: TransformerConfig) -> int:
        """How many numbers a checkpoint holds."""
        return sum(prod(weight.shape) for weight in self.weights(config))

    def weights(self, config: TransformerConfig) -> Iterator[Weight]:
        """Every tensor that a checkpoint of this family must hold, and where it goes."""
        size, mlp, width = config.hidden_size, config.mlp_size, config.head_size
        query, kv = config.heads * width, config.kv_heads * width
        yield Weight(self.names["embed"], "embed.weight", 0, (config.vocab_size, size))
        for i in range(config.layers):
            rows = [
                ("attn_norm.weight", "attn_norm.weight", 0, (size,)),
                ("q.weight", "qkv.weight", 0, (query, size)),
                ("k.weight", "qkv.weight", query, (kv, size)),
                ("v.weight", "qkv.weight", query + kv, (kv, size)),
                ("attn_out.weight", "attn_out.weight", 0, (size, size)),
                ("mlp_norm.weight", "mlp_norm.weight", 0, (size,)),
                ("gate.weight", "gate_up.weight", 0, (mlp, size)),
                ("up.weight", "gate_up.weight", mlp, (mlp, size)),
                ("down.weight", "down.weight", 0, (size, mlp)),
            ]
            if config.qkv_bias:
                rows += [
                    ("q.bias", "qkv.bias", 0, (query,)),
                    ("k.bias", "qkv.bias", query, (kv,)),
                    ("v.bias", "qkv.bias", query + kv, (kv,)),
                ]
            for part, target, start, shape in rows:
                stem, kind = part.rsplit(".", 1)
                yield Weight(f"{self.names[stem].format(i=i)}.{kind}", f"layers.{i}.{target}", start, shape)
        yield Weight(self.names["norm"], "norm.weight", 0, (size,))
        yield Weight(self.names["head"], "lm_head.weight", 0, (config.vocab_size, size))


def whole_number(config: Mapping[str, Any], name: str, default: int | None = None, *, least: int = 1) -> int:
    """A whole number from config.json; one that is missing without a default, or out of range, is refused by name."""
    value = config.get(name)
    if value is None:
        if default is None:
            raise CheckpointError(f"config.json has no {name!r}; it is needed to build the model")
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= LARGEST:
        raise CheckpointError(f"config.json has {name}={value!r}; it must be a whole number between {least} and {LARGEST}")
    return value


def positive_number(config: Mapping[str, Any], name: str, default: float) -> float:
    """A number above 0 from config.json, or the default where it is missing."""
    value = default if config.get(name) is None else config[name]
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise CheckpointError(f"config.json has {name}={value!r}; it must be a number above 0")
    return float(value)


def end_ids(fill: int, turn_end: int, rows: int) -> tuple[int, ...]:
    """The fill token, and the end of a turn if the vocabulary has it."""
    return tuple(dict.fromkeys((fill, turn_end) if turn_end < rows else (fill,)))


def refuse_unless(config: Mapping[str, Any], **expected: Any) -> None:
    """Refuse a config whose arithmetic we do not implement; an absent field counts as the expected value."""
    for name, value in expected.items():
        found = config.get(name, value)
        if found != value:
            raise CheckpointError(f"config.json has {name}={found!r}; only {value!r} is supported by this backbone")
