"""A recipe: everything that a pretraining run depends on, read from one TOML file."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, TypeVar

from unmask.errors import InputError, unknown
from unmask.tasks.families import FAMILIES, LEVELS
from unmask.tasks.problem import STYLES

OBJECTIVES = ("causal", "block", "uniform")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The model's sizes, in Dream's architecture."""

    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    mlp_size: int
    vocab_size: int
    """The tokenizer learns this many tokens."""
    context: int
    window: int
    """Open slots of a canvas."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of training under one mix. A pair is a value at the phase's start and end, linear in between."""

    name: str
    steps: int
    tokens: int
    """Tokens in a batch, about."""
    rate: tuple[float, float]
    """The learning rate."""
    objectives: Mapping[str, tuple[float, float]]
    """Shares of the rows: causal (left to right), block (masks in one block, nothing known after it), uniform masks."""
    styles: Mapping[str, float]
    """Shares of the ways in which a solution is written."""
    tasks: Mapping[str, float]
    filled: bool = False
    """True fills the window with end tokens; false ends a canvas with its answer and one end token."""
    level: str = ""
    """How hard the problems are, if not as the recipe says."""
    habits: float = 0.0
    """0: the styles' shares are the same for every question. Above 0: each manner of asking has shares of its own, drawn around
    `styles` (Dirichlet, this much concentrated), as in instruction data, where how long an answer is hangs on how one asks."""
    ordered_from: int = 0
    """Answers of fewer tokens than this are learned under uniform masks only: who writes in order then writes at length."""
    opened: float = 1.0
    """Share of the canvases whose prompt has the opening tag of the reasoning already; elsewhere it begins the answer."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to train, on what, in which phases."""

    name: str
    seed: int
    shape: Shape
    level: str
    """How hard the problems are."""
    phases: tuple[Phase, ...]
    save_every: int = 200
    evaluate_every: int = 500
    compile: bool = False

    @property
    def taught(self) -> str:
        """How hard the problems of the last phase are."""
        return self.phases[-1].level or self.level

    @property
    def steps(self) -> int:
        """All steps of all phases."""
        return sum(phase.steps for phase in self.phases)

    def at(self, step: int) -> tuple[Phase, int]:
        """The phase of a step, counted from 0, and the step's number in it."""
        for phase in self.phases:
            if step < phase.steps:
                return phase, step
            step -= phase.steps
        raise IndexError(step)

    def fingerprint(self, step: int) -> str:
        """What the first `step` steps depend on: phases after them may still be changed or added."""
        begun, before = [], 0
        for phase in self.phases:
            if before < max(step, 1):
                begun.append(phase)
            before += phase.steps
        facts = asdict(replace(self, phases=tuple(begun), save_every=0, evaluate_every=0))
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def find_recipe(name: str) -> Recipe:
    """A recipe of the package by name, or one's own by its path, which ends in .toml."""
    if name.endswith(".toml"):
        return read_recipe(name)
    folder = files("unmask.pretraining") / "recipes"
    known = sorted(file.name.removesuffix(".toml") for file in folder.iterdir())
    if name not in known:
        raise unknown("recipe", name, known)
    with as_file(folder / f"{name}.toml") as path:
        return read_recipe(path)


def read_recipe(path: str | Path) -> Recipe:
    """Read a recipe; what is unknown, missing or out of range is refused by name."""
    path = Path(path)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; give the path of a recipe") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML ({error})") from None
    try:
        return parse_recipe(raw)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def parse_recipe(raw: Mapping[str, Any]) -> Recipe:
    """A recipe from its parsed file."""
    values = dict(raw)
    phases = values.pop("phase", None)
    if not isinstance(phases, list) or not phases:
        raise InputError("a recipe needs at least one [[phase]]")
    shape = values.pop("shape", {})
    recipe = _build(
        Recipe, {**values, "shape": _build(Shape, shape, "[shape]"), "phases": tuple(map(_phase, phases))}, "the recipe"
    )
    for level in (recipe.level, *(phase.level for phase in recipe.phases if phase.level)):
        if level not in LEVELS:
            raise unknown("level", level, LEVELS)
    if len({phase.name for phase in recipe.phases}) < len(recipe.phases):
        raise InputError("two phases have the same name; give each its own, since it seeds the phase's draws")
    return recipe


def _phase(raw: Mapping[str, Any]) -> Phase:
    where = f"phase {raw.get('name', '?')!r}"
    values = dict(raw)
    if "rate" in values:
        values["rate"] = _pair(values["rate"], f"{where}: rate")
    if isinstance(values.get("objectives"), dict):
        values["objectives"] = {name: _pair(value, f"{where}: {name}") for name, value in values["objectives"].items()}
    phase: Phase = _build(Phase, values, where)
    for kind, shares, known in (
        ("objective", phase.objectives, OBJECTIVES), ("style", phase.styles, STYLES), ("task", phase.tasks, tuple(FAMILIES)),
    ):  # fmt: skip
        for name in shares:
            if name not in known:
                raise unknown(f"{kind} of {where}", name, known)
        flat = [share for value in shares.values() for share in (value if isinstance(value, tuple) else (value,))]
        if any(not isinstance(share, int | float) or not 0 <= share < float("inf") for share in flat) or not sum(flat) > 0:
            raise InputError(f"{where}: the shares of {kind}s must be numbers >= 0, one of them above 0")
    if not 0 <= phase.habits < 1e6:
        raise InputError(f"{where}: habits={phase.habits} must be a number of at least 0")
    if not 0 <= phase.ordered_from <= 100_000:
        raise InputError(f"{where}: ordered_from={phase.ordered_from} must be at least 0")
    if not 0 <= phase.opened <= 1:
        raise InputError(f"{where}: opened={phase.opened} must lie between 0 and 1")
    if phase.steps < 1 or phase.tokens < 256:
        raise InputError(f"{where}: steps={phase.steps} must be at least 1 and tokens={phase.tokens} at least 256")
    return phase


def _pair(value: Any, what: str) -> tuple[float, float]:
    pair = value if isinstance(value, list) else [value, value]
    if len(pair) != 2 or not all(isinstance(number, int | float) and number >= 0 for number in pair):
        raise InputError(f"{what}={value!r} must be a number >= 0, or two of them: from, to")
    return float(pair[0]), float(pair[1])


def _build(kind: type[T], raw: Mapping[str, Any], where: str) -> T:
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for name, value in raw.items():
        if name not in known:
            raise unknown(f"key of {where}", name, known)
        wanted = known[name].type
        if wanted in (int, str, bool) and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
            raise InputError(f"{where}: {name}={value!r} must be of type {wanted.__name__}")
    try:
        return kind(**raw)
    except TypeError as error:
        raise InputError(f"{where} is not complete: {str(error).rpartition('argument')[2].lstrip('s: ')} missing") from None
