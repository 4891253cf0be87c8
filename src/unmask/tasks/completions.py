"""Completions in files, to be scored: d1's `*_generations.json`, and JSON lines of our own."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unmask.errors import InputError
from unmask.files import json_lines
from unmask.tasks import countdown, sudoku
from unmask.tasks.problem import Problem

NUMBERS = re.compile(r"Numbers: \[([\d, ]+)\]")
TARGET = re.compile(r"Target: (\d+)")
NUMERIC = ("gsm8k", "words", "sums")
"""Tasks whose answers are numbers."""
PUZZLE = re.compile(r"Sudoku puzzle: ([0-9]{16})")


def read_completions(path: Path, task: str) -> list[tuple[Problem, str]]:
    """Problems with what a model made of them.

    d1's files hold {"generations": [{"question", "ground_truth", "generations"}, ...]}; in ours, each line is an object with
    question, answer, completion and, for countdown and sudoku, facts (as `unmask tasks sample --json` writes them).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error})") from None
    rows = _rows(path, text)
    found = []
    for number, row in enumerate(rows, start=1):
        try:
            problem, completion = _published(row, task) if "ground_truth" in row else _own(row, task)
            if task in NUMERIC and not math.isfinite(float(problem.answer.replace(",", ""))):
                raise ValueError(f"{problem.answer} is no number")
            if not isinstance(completion, str):
                raise TypeError(f"{completion!r} is no text")
            found.append((problem, completion))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError(f"{path} row {number} is not a completion of task {task!r} ({error!r})") from None
    if not found:
        raise InputError(f"{path} holds no completions")
    return found


def _rows(path: Path, text: str) -> list[Mapping[str, Any]]:
    try:
        whole = json.loads(text)
        rows = (
            whole["generations"] if isinstance(whole, dict) and "generations" in whole and "question" not in whole else [whole]
        )
    except (ValueError, RecursionError):
        rows = json_lines(path, text)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} must hold objects, one a completion")
    return rows


def _own(row: Mapping[str, Any], task: str) -> tuple[Problem, Any]:
    answer, facts = _text(row["answer"]), dict(row.get("facts", {}))
    if task == "countdown":
        facts = countdown.facts(facts["numbers"], facts["target"])
    if task == "sudoku":
        facts = sudoku.facts(facts["puzzle"], answer)
    return Problem(_text(row["question"]), answer, facts, boxed=task != "sudoku"), row["completion"]


def _published(row: Mapping[str, Any], task: str) -> tuple[Problem, Any]:
    question, truth, completion = _text(row.get("question", "")), row["ground_truth"], row["generations"]
    if task == "countdown":
        if isinstance(truth, list) and len(truth) == 2:
            facts = countdown.facts([int(number) for number in truth[0]], int(truth[1]))
        else:
            numbers = [int(number) for number in NUMBERS.search(question)[1].split(",")]  # type: ignore[index]
            facts = countdown.facts(numbers, int(TARGET.search(question)[1]))  # type: ignore[index]
        return Problem(question, "", facts), completion
    if task == "sudoku":
        puzzle = question[:16] if re.fullmatch("[0-9]{16}", question[:16]) else PUZZLE.search(question)[1]  # type: ignore[index]
        return Problem(question, _text(truth), sudoku.facts(puzzle, truth), boxed=False), completion
    return Problem(question, _text(truth)), completion


def _text(value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise TypeError(f"{value!r} is no text")
    return str(value)
