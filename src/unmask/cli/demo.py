"""unmask demo: one problem of each task, decoded twice side by side, by confidence alone and with the EOS logit annealed."""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text as Line

from unmask.cli.show import duration, painted
from unmask.files import check_target, whole
from unmask.frames import Frame
from unmask.generation import Generation
from unmask.model import Model, load
from unmask.tasks.problem import Problem
from unmask.tasks.task import Task, find_task

TASKS = ("words", "algebra", "countdown", "sudoku")
LENGTH, STEPS, SEED = 128, 128, 0
ALONE: dict[str, Any] = {"order": "top1", "eos": "none", "schedule": "linear", "steps": STEPS, "length": LENGTH}
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("by confidence alone (top1)", ALONE),
    ("the same, EOS logit annealed in the ranking", {**ALONE, "eos": "anneal:3"}),
]
SHOWN = (0.25, 0.5, 1.0)
"""Where there is no terminal, the canvas is printed at these parts of the steps."""


@dataclass
class Pair:
    """One problem, decoded in both ways."""

    task: Task
    problem: Problem
    frames: list[list[Frame]]
    answers: list[Generation]

    def right(self, way: int) -> str:
        """What an answer is worth, in words."""
        score = self.task.score(self.problem, self.answers[way].text)
        return f"{score.right} of {score.of} cells right" if score.of > 1 else "right" if score.solved else "wrong"


def run_demo(picture: Path | None = None) -> None:
    """Decode, show, and say what happened in words that the numbers choose."""
    if picture is not None:
        check_target(picture)
    console = Console(highlight=False)
    begun = time.perf_counter()
    model = load()
    console.print(
        f"The diffusion model inside this package, a window of {LENGTH} masks, {STEPS} steps, any slot at any step.\n"
        "Colour says when a token was revealed (dark early, light late); · is an end-of-sequence token, ░ a mask.\n",
        markup=False,
    )
    pairs = [_decode(model, find_task(name), console) for name in TASKS]
    console.print(_summary(pairs))
    console.print(f"\n{findings(pairs)}\n\n({model.name}, {str(model.dtype)[6:]}, {model.backbone.device}, seed {SEED}, "
                  f"{duration(time.perf_counter() - begun)})\n", markup=False)  # fmt: skip
    question = pairs[0].problem.question
    console.print(
        "Next:  unmask generate \\\n"
        f"         '{question}' --show-steps\n"
        "       unmask evaluate --task words --n 32 --steps 16,128 --eos none,anneal:3    what this does on average\n"
        "       unmask tasks sample words      problems of the kinds that the model knows\n"
        "       unmask rules                   orders, EOS policies, schedules\n"
        "       unmask doctor                  what this machine can load, and unmask models for what there is",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    if picture is not None:
        save_picture(pairs[0], picture)


def _decode(model: Model, task: Task, console: Console) -> Pair:
    """Both decodes of the task's problem, step by step beside each other."""
    problem = task.problems(1, level=model.taught["level"], seed=SEED)[0]
    messages = task.prompt(model.taught["prompt"]).prompt(problem.question)
    console.print(
        Line(f"--- {task.name}: ", style="bold").append(problem.question.strip().replace("\n", "  "), style="not bold")
    )
    runs = []
    for _, options in WAYS:
        job = model.prepare([messages], seed=SEED, **options)
        runs.append(job.run(1))
    pair = Pair(task, problem, [[], []], [])
    with Live(console=console, refresh_per_second=20, transient=True) if console.is_terminal else nullcontext() as live:
        for frames in _together([run.frames() for run in runs]):
            for seen, frame in zip(pair.frames, frames, strict=True):
                seen.append(frame)
            step = frames[0].step
            if live is not None:
                live.update(Group(_columns([line[-1] for line in pair.frames]), Line(f"step {step}/{STEPS}", style="dim")))
            elif step in [round(part * STEPS) for part in SHOWN[:-1]]:
                console.print(f"step {step} of {STEPS}", markup=False, style="dim")
                console.print(_columns(frames))
    console.print(_columns([line[-1] for line in pair.frames]))
    pair.answers = [run.results()[0] for run in runs]
    verdict = [f"{answer.effective_tokens} tokens, {pair.right(way)}" for way, answer in enumerate(pair.answers)]
    console.print(_row([Line(words, style="bold") for words in verdict]))
    console.print()
    return pair


def _together(runs: list[Iterator[Frame]]) -> Iterator[list[Frame]]:
    """The runs' frames, step by step; one that has ended stands still."""
    last: list[Frame | None] = [None] * len(runs)
    while True:
        news = [next(run, None) for run in runs]
        if not any(news):
            return
        last = [new or old for new, old in zip(news, last, strict=True)]
        yield [frame for frame in last if frame is not None]


def _row(cells: list[Line]) -> Table:
    table = Table.grid(expand=True, padding=(0, 2))
    for _ in cells:
        table.add_column(ratio=1, overflow="fold")
    table.add_row(*cells)
    return table


def _columns(frames: list[Frame]) -> Table:
    return _row(
        [
            Line().append(f"{name}\n", style="italic").append_text(_canvas(frame))
            for (name, _), frame in zip(WAYS, frames, strict=True)
        ]
    )


def _canvas(frame: Frame) -> Line:
    return painted(frame.pieces, frame.revealed_at, STEPS, fresh=None, breaks=True)


def _summary(pairs: list[Pair]) -> Table:
    table = Table(title="One problem of each task", title_justify="left", title_style="bold")
    for name in ("task", "alone: tokens", "", "annealed: tokens", ""):
        table.add_column(name, justify="right" if "tokens" in name else "left")
    for pair in pairs:
        alone, annealed = pair.answers
        table.add_row(
            pair.task.name, str(alone.effective_tokens), pair.right(0), str(annealed.effective_tokens), pair.right(1)
        )  # fmt: skip
    return table


def findings(pairs: list[Pair]) -> str:
    """What happened, from the numbers."""
    alone, annealed = (sum(pair.answers[way].effective_tokens for pair in pairs) for way in (0, 1))
    quarter = STEPS // 4
    early = [
        piece == "·"
        for pair in pairs
        for piece, step in zip(pair.frames[0][quarter - 1].pieces, pair.frames[0][quarter - 1].revealed_at, strict=True)
        if step is not None
    ]
    first = (
        f"By confidence alone, {sum(early) / len(early):.0%} of what the first {quarter} steps revealed were end-of-sequence "
        f"tokens, and the four answers have {alone} tokens together."
    )
    if annealed > alone:
        second = (
            f"With the EOS logit annealed in the ranking they have {annealed}: {annealed - alone} tokens more to think with."
        )
    elif annealed == alone:
        second = "With the EOS logit annealed in the ranking they have just as many."
    else:
        second = f"With the EOS logit annealed in the ranking they have {annealed}, which is not more."
    return f"{first}\n{second}\nFour problems prove nothing; `unmask evaluate` counts over many."


PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}">
<style>.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; }} {styles}</style>
<defs>{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#1b1d23"/>
<g transform="translate(14, 12)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def save_picture(pair: Pair, path: Path) -> None:
    """Both decodes of a problem at three of their steps, as an SVG without fonts or links of its own."""
    console = Console(record=True, width=136, file=StringIO(), force_terminal=True, color_system="truecolor", highlight=False)
    console.print(Line(pair.problem.question.strip() + "\n", style="bold"))
    for part in SHOWN:
        step = round(part * STEPS)
        console.print(f"step {step} of {STEPS}", markup=False, style="dim")
        console.print(_columns([frames[min(step, len(frames)) - 1] for frames in pair.frames]))
    console.print(_row([Line(f"{pair.right(way)}", style="bold") for way in (0, 1)]))
    with whole(path) as file:
        file.write_text(console.export_svg(code_format=PICTURE), encoding="utf-8")
