"""unmask: decode masked diffusion language models in the order that works.

Everything public is named here and imported when first used, so `import unmask` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmask.adaptive import above, at_least, by_factor, entropy_bounded, origin, self_planned, stable
    from unmask.backbones.base import Backbone
    from unmask.backbones.toy import ToyBackbone
    from unmask.canvas import OPEN, Canvas
    from unmask.checkpoint import load_backbone
    from unmask.counts import all_at_the_end, block_counts, dream_counts, linear_counts, one_by_one, progressive_counts
    from unmask.errors import CheckpointError, InputError, MemoryLimitError, RecordError, RuleError, UnmaskError
    from unmask.generation import Generation
    from unmask.loop import Decoded, decode, decode_steps
    from unmask.model import Model, load
    from unmask.pick import Pick, greedy, sampled
    from unmask.predictions import Stats
    from unmask.ranking import Rank, eos_annealed, eos_penalized, eos_suppressed, raw
    from unmask.record import Record, Recorder
    from unmask.rng import Stream
    from unmask.scores import (
        Score,
        near_known,
        negative_entropy,
        perturbed,
        position_and_content,
        probability_margin,
        token_frequencies,
        top1_probability,
    )
    from unmask.selection import Select, at_step, fixed, in_blocks, top_by, uniform
    from unmask.settings import Settings
    from unmask.view import Choice, Step, View

__version__ = "0.1.0"

_HOMES = {
    "unmask.adaptive": (
        "above", "at_least", "by_factor", "entropy_bounded", "origin", "self_planned", "stable",
    ),
    "unmask.backbones.base": ("Backbone",),
    "unmask.backbones.toy": ("ToyBackbone",),
    "unmask.canvas": ("OPEN", "Canvas"),
    "unmask.checkpoint": ("load_backbone",),
    "unmask.counts": (
        "all_at_the_end", "block_counts", "dream_counts", "linear_counts", "one_by_one", "progressive_counts",
    ),
    "unmask.loop": ("Decoded", "decode", "decode_steps"),
    "unmask.errors": ("CheckpointError", "InputError", "MemoryLimitError", "RecordError", "RuleError", "UnmaskError"),
    "unmask.generation": ("Generation",),
    "unmask.model": ("Model", "load"),
    "unmask.pick": ("Pick", "greedy", "sampled"),
    "unmask.predictions": ("Stats",),
    "unmask.ranking": ("Rank", "eos_annealed", "eos_penalized", "eos_suppressed", "raw"),
    "unmask.record": ("Record", "Recorder"),
    "unmask.rng": ("Stream",),
    "unmask.scores": (
        "Score", "near_known", "negative_entropy", "perturbed", "position_and_content", "probability_margin",
        "token_frequencies", "top1_probability",
    ),
    "unmask.selection": ("Select", "at_step", "fixed", "in_blocks", "top_by", "uniform"),
    "unmask.settings": ("Settings",),
    "unmask.view": ("Choice", "Step", "View"),
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604 (all of them are strings)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unmask' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
