"""unmask pretrain."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from unmask.errors import InputError


def pretrain(
    recipe: Annotated[str, typer.Argument(help="A recipe of the package (tiny), or the path of a TOML file.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The run's folder: checkpoint, state, log. A run that is there goes on.")
    ],
    threads: Annotated[int | None, typer.Option(help="Threads of this machine to use; all unless said.")] = None,
    until: Annotated[int | None, typer.Option(help="Stop after this step; the run can go on later.")] = None,
) -> None:
    """Train a small model from scratch on this machine's CPU; stop it at any time, and call it again to go on.

    Example: unmask pretrain tiny --out runs/tiny
    """
    import torch

    from unmask.cli.show import duration
    from unmask.pretraining.recipe import find_recipe
    from unmask.pretraining.train import Training

    if threads is not None:
        if not 1 <= threads <= 1024:
            raise InputError(f"threads={threads} must lie between 1 and 1024")
        torch.set_num_threads(threads)
    run = Training(find_recipe(recipe), out)
    if run.step:
        print(f"{out} holds step {run.step}; going on from there", file=sys.stderr)
    if run.recipe.compile and not run.compiles:
        print("no C++ compiler was found, so nothing is compiled and training is slower; install g++", file=sys.stderr)
    began, first = time.perf_counter(), run.step
    for report in run.reports(until):
        if report.scores is not None:
            solved = ", ".join(f"{task} {share:.0%}" for task, share in report.scores.items())
            print(f"step {report.step}: in blocks of 16, one token a step: {solved}", file=sys.stderr)
            continue
        left = (time.perf_counter() - began) / (report.step - first) * (report.steps - report.step)
        print(
            f"step {report.step}/{report.steps} {report.phase}  loss {report.loss:.3f}  "
            f"{report.tokens / report.seconds:,.0f} tokens/s  {duration(left)} left",
            end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr,
        )  # fmt: skip
    print(
        f"{out} is at step {run.step} of {run.recipe.steps}; try it: unmask generate --model {out} 'What is 3x + 2 for x = 4?'"
    )
