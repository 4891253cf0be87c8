"""unmask demo: the problem and two cures, on a backbone that needs no weights."""

from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text as Line

from unmask.cli.show import Watch, painted
from unmask.files import check_target, whole
from unmask.frames import Frame
from unmask.generation import Generation
from unmask.model import Run, load

PROMPT = "What should one do first?"
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("by confidence alone, one token a step", {"order": "top1", "eos": "none", "schedule": "linear", "steps": 128}),
    ("the same with the EOS logit annealed", {"order": "top1", "eos": "anneal:3", "schedule": "linear", "steps": 128}),
    ("unmask's default: margin, annealed, progressive, 32 steps", {"steps": 32}),
]


def run_demo(picture: Path | None = None) -> None:
    """Decode the same canvas in three ways and say what happened."""
    if picture is not None:
        check_target(picture)
    shown: list[tuple[str, list[Frame], int]] = []
    model = load("toy")
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"The toy model knows one sentence. Prompt: {PROMPT!r}; a window of 128 tokens, all masked.\n", markup=False)
    results: list[Generation] = []
    for title, options in SETTINGS:
        console.print(f"--- {title}", markup=False, style="bold")
        job = model.prepare(PROMPT, length=128, **options)
        run = Run(model, job.strategy, job.rows, job.seeds)
        frames: list[Frame] = []
        with Watch(console=console, every=max(1, run.steps // 8)) as watch:
            for frame in run.frames():
                watch.show(frame, run.steps)
                frames.append(frame)
        shown.append((title, frames, run.steps))
        results.append(run.results()[0])
        done = results[-1]
        console.print(f"{done.nfe} passes, {done.effective_tokens} tokens of text: {done.text}\n", markup=False)
    lost = results[1].effective_tokens - results[0].effective_tokens
    console.print(
        f"Ranked by raw confidence, end-of-sequence tokens were taken first, from the end of the window, and {lost} tokens\n"
        "that annealing keeps were lost to them. Fully non-autoregressive decoding does that to LLaDA and Dream too.\n\n"
        "Next:  unmask generate 'What should one do first?' --show-steps --order top1 --eos none\n"
        "       unmask rules     the orders, EOS policies, schedules and compatibility profiles\n"
        "       unmask doctor    what this machine can load, and unmask models for what there is to load",
        markup=False,
    )
    if picture is not None:
        save_picture(shown, picture)


PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}">
<style>.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; }} {styles}</style>
<defs>{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#1b1d23"/>
<g transform="translate(14, 12)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def save_picture(shown: list[tuple[str, list[Frame], int]], path: Path) -> None:
    """The decodes at five of their steps, as an SVG without fonts or links of its own."""
    console = Console(record=True, width=136, file=StringIO(), force_terminal=True, color_system="truecolor", highlight=False)
    for title, frames, last in shown:
        console.print(title, style="bold", markup=False)
        for part in (0.1, 0.25, 0.5, 0.75, 1.0):
            frame = frames[round(part * last) - 1]
            console.print(Line(f"{frame.step:>4}  ").append_text(painted(frame.pieces, frame.revealed_at, last)))
        console.print()
    with whole(path) as file:
        file.write_text(console.export_svg(code_format=PICTURE), encoding="utf-8")
