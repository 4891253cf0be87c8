"""unmask demo: the problem and two cures, on a backbone that needs no weights."""

import sys
from typing import Any

from rich.console import Console

from unmask.cli.show import Watch, painted
from unmask.frames import Frame
from unmask.generation import Generation
from unmask.model import Run, load
from unmask.settings import Settings

PROMPT = "What should one do first?"
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("by confidence alone, one token a step", {"order": "top1", "eos": "none", "schedule": "linear", "steps": 128}),
    ("the same with the EOS logit annealed", {"order": "top1", "eos": "anneal:3", "schedule": "linear", "steps": 128}),
    ("unmask's default: margin, annealed, progressive, 32 steps", {"steps": 32}),
]


def run_demo() -> None:
    """Decode the same canvas in three ways and say what happened."""
    model = load("toy")
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"The toy model knows one sentence. Prompt: {PROMPT!r}; a window of 128 tokens, all masked.\n", markup=False)
    results: list[Generation] = []
    for title, options in SETTINGS:
        console.print(f"--- {title}", markup=False, style="bold")
        strategy = model.strategy(Settings.of({"length": 128, **options}))
        run = Run(model, strategy, [model.row(PROMPT, strategy.settings)], [(0, 0)])
        last: Frame | None = None
        with Watch(console=console, every=max(1, run.steps // 8)) as watch:
            for last in run.frames():
                watch.show(last, run.steps)
        assert last is not None
        if watch.live is None:
            console.print(painted(last.pieces, last.revealed_at, run.steps))
        results.append(run.results()[0])
        done = results[-1]
        console.print(f"{done.nfe} passes, {done.effective_tokens} tokens before the end: {done.text}\n", markup=False)
    lost = results[1].effective_tokens - results[0].effective_tokens
    console.print(
        f"Ranked by raw confidence, end-of-sequence tokens were taken first, from the end of the window, and {lost} tokens\n"
        "that annealing keeps were lost to them. Fully non-autoregressive decoding does that to LLaDA and Dream too.\n\n"
        "Next:  unmask generate 'What should one do first?' --show-steps --order top1 --eos none\n"
        "       unmask rules     the orders, EOS policies, schedules and compatibility profiles\n"
        "       unmask doctor    what this machine can load, and unmask models for what there is to load",
        markup=False,
    )
    sys.stdout.flush()
