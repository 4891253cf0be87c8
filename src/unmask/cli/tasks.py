"""unmask tasks: problems and their scores."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli.info import table
from unmask.errors import InputError, unknown

tasks = typer.Typer(
    name="tasks",
    rich_markup_mode=None,
)
Json = Annotated[bool, typer.Option("--json", help="For machines.")]


@tasks.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Show tasks, make problems, score completions.

    Example: unmask tasks sample sudoku -n 5
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@tasks.command("list")
def list_tasks(as_json: Json = False) -> None:
    """List the tasks.

    Example: unmask tasks list
    """
    from unmask.tasks.task import TASKS

    rows = [
        {"task": task.name, "about": task.about, "generator": task.family is not None, "hub": task.hub.get("dataset")}
        for task in TASKS.values()
    ]
    if as_json:
        print(json.dumps(rows))
        return
    lines = [[row["task"], row["about"], "yes" if row["generator"] else "no", row["hub"] or "-"] for row in rows]
    table(["task", "about", "makes problems", "on the hub"], [[str(cell) for cell in line] for line in lines])


@tasks.command("sample")
def sample_problems(
    name: Annotated[str, typer.Argument(help="A task: see `unmask tasks list`.")],
    n: Annotated[int, typer.Option("-n", help="How many.")] = 3,
    level: Annotated[str, typer.Option(help="easy, medium or hard.")] = "easy",
    split: Annotated[str, typer.Option(help="train or test; no problem is in both.")] = "test",
    seed: Annotated[int, typer.Option(help="Same seed, same problems.")] = 0,
    style: Annotated[str, typer.Option(help="How the solution is written: long, worked, terse, direct.")] = "worked",
    data: Annotated[str | None, typer.Option(help="Take them from this published file, or 'hub'.")] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Show the whole prompt instead of the question.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One object a line, with answer and solution.")] = False,
) -> None:
    """Make problems with their worked solutions, or read published ones.

    Example: unmask tasks sample sudoku -n 5
    """
    from unmask.tasks.problem import STYLES
    from unmask.tasks.task import find_task

    if style not in STYLES:
        raise unknown("style", style, STYLES)
    task = find_task(name)
    asked = task.prompt()
    for index, problem in enumerate(task.problems(n, level=level, split=split, seed=seed, data=data)):  # type: ignore[arg-type]
        solution = asked.prefill + problem.response(style) if problem.worked else None
        if as_json:
            facts = {"question": problem.question, "answer": problem.answer, "facts": dict(problem.facts)}
            print(json.dumps({"task": name, **facts, "boxed": problem.boxed, "solution": solution}))
            continue
        question = asked.prompt(problem.question, chat=False) if prompt else problem.question
        print(f"--- {name} {index + 1}\n{str(question).strip()}\n\n{solution or 'answer: ' + problem.answer}\n")


@tasks.command("score")
def score_completions(
    file: Annotated[
        Path,
        typer.Argument(help="d1's *_generations.json, or JSON lines with question, answer, completion and facts."),
    ],
    task: Annotated[str, typer.Option("--task", "-t", help="The task that they answer.")],
    scorer: Annotated[str, typer.Option(help="strict, d1, or both.")] = "both",
    rows: Annotated[bool, typer.Option("--rows", help="Also one JSON object for each completion.")] = False,
) -> None:
    """Score completions: right answers over all, or right cells over empty ones for Sudoku.

    Example: unmask tasks score gsm8k_256_generations.json --task gsm8k
    """
    from unmask.tasks.completions import read_completions
    from unmask.tasks.task import SCORERS, find_task

    found = find_task(task)
    if scorer not in (*SCORERS, "both"):
        raise unknown("scorer", scorer, (*SCORERS, "both"))
    pairs = read_completions(file, task)
    names = SCORERS if scorer == "both" else (scorer,)
    scores = {name: [found.score(problem, text, name) for problem, text in pairs] for name in names}
    if rows:
        for index in range(len(pairs)):
            print(json.dumps({"row": index, **{name: asdict(each[index]) for name, each in scores.items()}}))
    summary: dict[str, Any] = {"task": task, "completions": len(pairs)}
    for name, each in scores.items():
        right, of = sum(score.right for score in each), sum(score.of for score in each)
        if not of:
            raise InputError(f"{file} has nothing to score: no Sudoku in it has an empty cell")
        summary[name] = {"right": right, "of": of, "accuracy": right / of, "solved": sum(score.solved for score in each)}
    print(json.dumps(summary))
    for name, value in summary.items():
        if isinstance(value, dict):
            print(f"{name}: {value['right']}/{value['of']} = {100 * value['accuracy']:.2f}%", file=sys.stderr)
