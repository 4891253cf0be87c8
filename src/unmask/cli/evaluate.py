"""unmask evaluate."""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unmask.errors import InputError

if TYPE_CHECKING:
    from unmask.evaluation import Outcome, Plan
    from unmask.model import Model

MANY = "Several, separated by commas, are evaluated in turn, in every combination."


def evaluate(
    task: Annotated[
        list[str], typer.Option("--task", "-t", help="A task (see `unmask tasks list`); can be given several times.")
    ],
    model: Annotated[str, typer.Option("--model", "-m", help="tiny, a checkpoint folder, or a hub id.")] = "tiny",
    n: Annotated[int, typer.Option("-n", "--n", help="Problems of each task.")] = 64,
    length: Annotated[int, typer.Option("--length", "-l", help="Tokens to generate (the window).")] = 128,
    steps: Annotated[str, typer.Option("--steps", "-s", help=f"Denoising steps. {MANY}")] = "16",
    order: Annotated[str, typer.Option(help=f"Which positions first: see `unmask rules`. {MANY}")] = "top1",
    first: Annotated[str, typer.Option(help=f"Another order for step 1 alone, such as random; none for none. {MANY}")] = "none",
    eos: Annotated[str, typer.Option(help=f"EOS policy of the ranking. {MANY}")] = "none",
    schedule: Annotated[str, typer.Option(help=f"How many per step. {MANY}")] = "linear",
    blocks: Annotated[str, typer.Option(help=f"Block size; 0 for none. {MANY}")] = "0",
    temperature: Annotated[str, typer.Option(help=f"0 writes the likeliest token. {MANY}")] = "0",
    samples: Annotated[int, typer.Option(help="Answers to each problem; more than one also gives pass@k.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the problems and of all random numbers.")] = 0,
    level: Annotated[str | None, typer.Option(help="easy, medium or hard; what the model was taught unless said.")] = None,
    data: Annotated[
        str | None, typer.Option(help="A published data file of the task, or 'hub'; our generator unless said.")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(help="A prompt file (.toml) or the name of one; the task's unless said.")
    ] = None,
    scorer: Annotated[str, typer.Option(help="strict, or d1 for the published one.")] = "strict",
    batch: Annotated[int, typer.Option(help="Problems decoded together; finished ones are kept batch by batch.")] = 16,
    fused: Annotated[bool, typer.Option("--fused", help="One padded pass per batch: exact but for the last bits.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, mps; the best there is unless said.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Keep every answer in this folder; a run that is there goes on.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as one JSON list.")] = False,
) -> None:
    """Measure how well a model solves tasks under ways of decoding.

    Example: unmask evaluate --task words --n 64 --steps 16,128 --blocks 0,16
    """
    from unmask.evaluation import Plan, grid, report
    from unmask.evaluation import evaluate as outcomes_of
    from unmask.model import load
    from unmask.settings import Settings
    from unmask.tasks.task import find_task

    settings = grid(
        {
            "length": [length], "steps": _numbers(steps, "steps", int), "order": _words(order), "first": _words(first),
            "eos": _words(eos), "schedule": _words(schedule), "blocks": _numbers(blocks, "blocks", int),
            "temperature": _numbers(temperature, "temperature", float),
        }
    )  # fmt: skip
    for each in settings:
        each["blocks"] = each["blocks"] or None
        each["first"] = None if each["first"] == "none" else each["first"]
        Settings.of(each)
    for name, number in (("n", n), ("samples", samples), ("batch", batch)):
        if number < 1:
            raise InputError(f"{name}={number} must be at least 1")
    chosen = [find_task(name) for name in task]
    loaded = load(model, device=device, dtype=dtype)
    hard = level or loaded.taught.get("level", "easy")
    asked = prompt or loaded.taught.get("prompt")
    plans = []
    for each_task in chosen:
        problems = each_task.problems(n, level=hard, seed=seed, data=data)
        source = f"{hard}, test, seed {seed}, first {n}" if data is None else f"{data}, first {n}"
        for each in settings:
            plans.append(Plan(each_task, problems, each, source, scorer=scorer, prompt=asked, samples=samples, seed=seed))
            loaded.strategy(Settings.of(each)).counts(length)  # refused before anything is decoded
    lines = []
    for number, plan in enumerate(plans, start=1):
        progress = _Progress(f"{number}/{len(plans)} {plan.task.name}", n * samples)
        outcomes = []
        for outcome in outcomes_of(loaded, plan, batch=batch, fused=fused, file=_file(out, loaded, plan)):
            outcomes.append(outcome)
            progress.tick(outcomes)
        lines.append({**report(loaded, plan, outcomes), "batch": batch, "fused": fused})
        progress.clear()
        if not as_json:
            _print(lines[-1], heads=number == 1)
    if as_json:
        print(json.dumps(lines))
    if out is not None:
        from unmask.files import whole

        with whole(out / "report.json") as part:
            part.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


def _file(out: Path | None, model: "Model", plan: "Plan") -> Path | None:
    """Where the answers of a plan are kept: its name says task and order, a hash the rest."""
    if out is None:
        return None
    digest = hashlib.sha256(json.dumps(plan.identity(model), sort_keys=True).encode()).hexdigest()[:12]
    return out / f"{plan.task.name}-{digest}.jsonl"


COLUMNS: list[tuple[str, int, Callable[[dict[str, Any]], str]]] = [
    ("task", 10, lambda line: line["task"]),
    ("order", 8, lambda line: line["rule"]),
    ("first", 7, lambda line: line["first"] or "-"),
    ("eos", 10, lambda line: line["eos"]),
    ("steps", 5, lambda line: str(line["steps"])),
    ("blocks", 6, lambda line: str(line["blocks"] or "-")),
    ("n", 4, lambda line: str(line["n"])),
    ("accuracy (95%)", 19, lambda line: f"{line['accuracy']:6.1%} ({line['low']:.1%}-{line['high']:.1%})"),
    ("tokens", 6, lambda line: f"{line['effective_tokens']:.1f}"),
    ("early eos", 9, lambda line: f"{line['early_ends']:.0%}"),
    ("place", 5, lambda line: f"{line['early_place']:.2f}"),
    ("nfe", 5, lambda line: f"{line['nfe']:.0f}"),
    ("seconds", 7, lambda line: f"{line['seconds']:.2f}"),
    ("pass@", 0, lambda line: " ".join(f"{k}:{share:.1%}" for k, share in line.get("pass_at", {}).items())),
]


def _print(line: dict[str, Any], *, heads: bool) -> None:
    if heads:
        print("  ".join(name.ljust(width) for name, width, _ in COLUMNS).rstrip())
    print("  ".join(show(line).ljust(width) for _, width, show in COLUMNS).rstrip(), flush=True)


class _Progress:
    """How far an evaluation is, on stderr."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total, self.begun, self.last = name, total, time.monotonic(), time.monotonic()
        self.terminal, self.first = sys.stderr.isatty(), 0

    def tick(self, outcomes: Sequence["Outcome"]) -> None:
        now, done = time.monotonic(), len(outcomes)
        if now - self.begun < 1:  # what a file already held
            self.first = done
        if now - self.last < (0.2 if self.terminal else 15):
            return
        from unmask.cli.show import duration

        self.last = now
        left = (now - self.begun) / max(1, done - self.first) * (self.total - done)
        right = sum(outcome.right for outcome in outcomes) / max(1, sum(outcome.of for outcome in outcomes))
        line = f"{self.name}: {done}/{self.total}, {right:.1%} right, {duration(left)} left"
        print(line, end="\r" if self.terminal else "\n", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.terminal:
            sys.stderr.write("\r\x1b[K")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()] or [text]


def _numbers(text: str, name: str, kind: Callable[[str], Any]) -> list[Any]:
    try:
        return [kind(word) for word in _words(text)]
    except ValueError:
        raise InputError(f"{name}={text!r} must be numbers, separated by commas") from None
