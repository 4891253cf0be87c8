"""How well a model solves a task under a way of decoding: every row kept, resumable, with intervals."""

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from unmask.errors import InputError
from unmask.files import whole
from unmask.generation import Generation
from unmask.model import Model
from unmask.provenance import stamp
from unmask.settings import Settings
from unmask.tasks.problem import Problem
from unmask.tasks.task import Task

EARLY = 0.25
"""The first quarter of a window's reveals is early."""
RESAMPLES = 2000
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Outcome:
    """One decode of one problem, scored."""

    problem: int
    sample: int
    right: int
    of: int
    solved: bool
    effective_tokens: int
    nfe: int
    seconds: float
    """Its share of the batch's wall time."""
    early_ends: float
    """Share of end tokens among the first quarter of the reveals."""
    early_place: float
    """Mean place of those in the window, 0 for its start and 1 for its end."""
    text: str


@dataclass(frozen=True)
class Plan:
    """What to evaluate: a task's problems, asked in one way, decoded with one group of settings."""

    task: Task
    problems: Sequence[Problem]
    settings: Mapping[str, Any]
    source: str
    """Where the problems come from, in words: part of what identifies a result."""
    scorer: str = "strict"
    prompt: str | None = None
    samples: int = 1
    seed: int = 0

    def identity(self, model: Model) -> dict[str, Any]:
        """Everything that the outcomes depend on."""
        asked = self.task.prompt(self.prompt)
        return {
            "model": model.name, "fingerprint": model.fingerprint, "dtype": str(model.dtype)[6:], "task": self.task.name,
            "task_version": self.task.version, "prompt_version": asked.version, "prompt": asked.user, "source": self.source,
            "scorer": self.scorer, "samples": self.samples, "seed": self.seed,
            "settings": asdict(model.strategy(self._settings()).settings),
        }  # fmt: skip

    def _settings(self) -> Settings:
        return Settings.of(self.settings)


def evaluate(model: Model, plan: Plan, *, batch: int = 16, fused: bool = False, file: Path | None = None) -> Iterator[Outcome]:
    """The outcomes in the order of problems and samples; those that `file` holds already are taken from there."""
    identity = {**plan.identity(model), "fused": fused}
    yield from (done := [] if file is None else read_outcomes(file, identity))
    wanted = [(problem, sample) for problem in range(len(plan.problems)) for sample in range(plan.samples)]
    if [(outcome.problem, outcome.sample) for outcome in done] != wanted[: len(done)]:
        raise InputError(f"{file} holds outcomes that are not the first ones of this evaluation; give another folder")
    asked = plan.task.prompt(plan.prompt)
    for start in range(len(done), len(wanted), batch):
        part = wanted[start : start + batch]
        prompts = [asked.prompt(plan.problems[problem].question, chat=model.text.template is not None) for problem, _ in part]
        seeds = [(plan.seed * 2**32 + problem, sample) for problem, sample in part]
        begun = time.perf_counter()
        answers = model.generate(prompts, seeds=seeds, fused=fused, **plan.settings)
        seconds = (time.perf_counter() - begun) / len(part)
        outcomes = [
            _outcome(problem, sample, plan, answer, seconds) for (problem, sample), answer in zip(part, answers, strict=True)
        ]
        if file is not None:
            with file.open("a", encoding="utf-8") as rows:
                rows.write("".join(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes))
        yield from outcomes


def _outcome(problem: int, sample: int, plan: Plan, answer: Generation, seconds: float) -> Outcome:
    score = plan.task.score(plan.problems[problem], answer.text, plan.scorer)
    tokens, passes = answer.effective_tokens, answer.nfe
    return Outcome(
        problem, sample, score.right, score.of, score.solved, tokens, passes, seconds, *early(answer), answer.text
    )  # fmt: skip


def early(answer: Generation) -> tuple[float, float]:
    """Of the first quarter of the reveals: the share of end tokens, and the mean place in the window."""
    assert answer.record is not None
    columns = answer.record.columns
    count = max(1, round(EARLY * len(columns["slots"])))
    first = np.argsort(columns["step"], kind="stable")[:count]
    ends = np.isin(columns["token"][first], answer.record.meta["end_ids"])
    return float(ends.mean()), float(columns["slot"][first].mean() / max(1, len(columns["slots"]) - 1))


def read_outcomes(file: Path, identity: Mapping[str, Any]) -> list[Outcome]:
    """The outcomes in a file of this very evaluation; the file is begun if it is not there."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole(file) as part:
            part.write_text(json.dumps({"evaluation": identity}) + "\n", encoding="utf-8")
        return []
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    if not lines[-1].endswith("\n"):  # killed in the middle of a line
        lines.pop()
        with whole(file) as part:
            part.write_text("".join(lines), encoding="utf-8")
    try:
        head, *rows = [json.loads(line) for line in lines]
        found, outcomes = head["evaluation"], [Outcome(**row) for row in rows]
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{file} is damaged ({error}); delete it to evaluate anew") from None
    for name, value in identity.items():
        if found.get(name) != json.loads(json.dumps(value)):
            raise InputError(f"{file} was made with {name}={found.get(name)!r:.200}, not {value!r:.200}; give another folder")
    return outcomes


def report(model: Model, plan: Plan, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """One line of results, with everything that it depends on."""
    identity = plan.identity(model)
    settings = identity["settings"]
    accuracy, low, high = interval(outcomes)
    counts = model.strategy(plan._settings()).counts(settings["length"])
    line: dict[str, Any] = {
        "model": model.name, "task": plan.task.name, "rule": settings["order"], "first": settings["first"],
        "eos": settings["eos"], "schedule": settings["schedule"], "planner": "none", "steps": len(counts),
        "blocks": settings["blocks"], "temperature": settings["temperature"], "n": len({o.problem for o in outcomes}),
        "accuracy": accuracy, "low": low, "high": high, "solved": _mean([o.solved for o in outcomes]),
    }  # fmt: skip
    for name in ("effective_tokens", "nfe", "seconds", "early_ends", "early_place"):
        line[name] = _mean([getattr(outcome, name) for outcome in outcomes])
    if plan.samples > 1:
        line["pass_at"] = {k: pass_at(outcomes, k) for k in (1, 2, 4, 8, 16, 32, 64) if k <= plan.samples}
    return {**line, **{name: value for name, value in identity.items() if name not in line}, **stamp(model.backbone.device)}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def interval(outcomes: Sequence[Outcome]) -> tuple[float, float, float]:
    """Accuracy with its 95% interval: Wilson's for single answers to as many problems, else a bootstrap over problems.

    Right parts over parts: the accuracy over all empty cells for Sudoku.
    """
    problems = sorted({outcome.problem for outcome in outcomes})
    place = {problem: index for index, problem in enumerate(problems)}
    right, of = np.zeros(len(problems)), np.zeros(len(problems))
    for outcome in outcomes:
        right[place[outcome.problem]] += outcome.right
        of[place[outcome.problem]] += outcome.of
    share, n = float(right.sum() / of.sum()), len(problems)
    if (of == 1).all():
        middle, spread = share + Z95**2 / (2 * n), Z95 * math.sqrt(share * (1 - share) / n + Z95**2 / (4 * n**2))
        low, high = ((middle + sign * spread) / (1 + Z95**2 / n) for sign in (-1, 1))
        return share, max(0.0, low), min(1.0, high)
    drawn = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))
    low, high = np.quantile(right[drawn].sum(1) / of[drawn].sum(1), (0.025, 0.975))
    return share, float(low), float(high)


def pass_at(outcomes: Sequence[Outcome], k: int) -> float:
    """The chance that one of k samples solves a problem, unbiased (Chen et al., 2021): the mean of 1 - C(n-c, k) / C(n, k)."""
    solved: dict[int, list[bool]] = {}
    for outcome in outcomes:
        solved.setdefault(outcome.problem, []).append(outcome.solved)
    return _mean([1 - math.comb(len(each) - sum(each), k) / math.comb(len(each), k) for each in solved.values()])


def grid(options: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values; None means that a setting is left to the profile.

    >>> grid({"steps": [16, 32], "eos": ["none"]})
    [{'steps': 16, 'eos': 'none'}, {'steps': 32, 'eos': 'none'}]
    """
    names = list(options)
    combinations = (dict(zip(names, values, strict=True)) for values in product(*options.values()))
    return [{name: value for name, value in chosen.items() if value is not None} for chosen in combinations]
