"""Published data files, and our own, as problems. A row that is not as published is refused by its number."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from unmask.errors import InputError
from unmask.tasks import countdown, sudoku
from unmask.tasks.problem import Problem

Reader = Callable[[Path | list[Mapping[str, Any]]], list[Problem]]


def _rows(source: Path | list[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The rows of a JSON-lines or CSV file, or rows that are there already."""
    if not isinstance(source, Path):
        return source
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}; give a file of the task's data") from None
    except UnicodeDecodeError:
        raise InputError(f"{source} is not UTF-8 text; give a .jsonl or .csv file") from None
    if source.suffix == ".csv":
        return list(csv.DictReader(text.splitlines()))
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise InputError(f"{source} line {number} is not JSON ({error})") from None
    return rows


def _reader(make: Callable[[Mapping[str, Any]], Problem], needs: str) -> Reader:
    def read(source: Path | list[Mapping[str, Any]]) -> list[Problem]:
        problems = []
        for number, row in enumerate(_rows(source), start=1):
            try:
                problems.append(make(row))
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                where = source if isinstance(source, Path) else "the data set"
                raise InputError(f"{where} row {number} is not as expected ({error!r}); it needs {needs}") from None
        if not problems:
            raise InputError(f"{source} has no rows; it needs {needs}")
        return problems

    return read


def _gsm8k(row: Mapping[str, Any]) -> Problem:
    answer = row["answer"].rpartition("####")[2].strip().replace(",", "")
    float(answer)
    return Problem(row["question"], answer)


def _math(row: Mapping[str, Any]) -> Problem:
    return Problem(row["problem"], str(row["answer"]))


def _countdown(row: Mapping[str, Any]) -> Problem:
    if "facts" in row:
        return _own(row)
    if "input" in row:
        numbers, target = tuple(int(number) for number in row["input"].split(",")), int(row["output"])
    else:
        numbers, target = tuple(int(number) for number in row["nums"]), int(row["target"])
    found = countdown.solve(numbers, target) if len(numbers) == 3 else None
    answer = row.get("solution") or (found.expression if found else "")
    return Problem(countdown.question(numbers, target), str(answer), {"numbers": numbers, "target": target})


def _sudoku(row: Mapping[str, Any]) -> Problem:
    if "facts" in row:
        return _own(row)
    puzzle, grid = row["Puzzle"], row["Solution"]
    if not re.fullmatch(r"[0-4]{16}", puzzle) or grid not in sudoku.solutions(puzzle):
        raise ValueError(f"{puzzle} with {grid} is not a puzzle with its solution")
    return Problem(sudoku.question(puzzle), grid, {"puzzle": puzzle}, boxed=False)


def _own(row: Mapping[str, Any]) -> Problem:
    return Problem(row["question"], str(row["answer"]), dict(row.get("facts", {})), boxed=bool(row.get("boxed", True)))


read_gsm8k = _reader(_gsm8k, 'question and answer, ending in "#### 18"')
read_math = _reader(_math, "problem and answer")
read_countdown = _reader(_countdown, 'input "3,5,1" and output "12", or nums and target')
read_sudoku = _reader(_sudoku, "Puzzle and Solution, 16 digits each, 0 for empty")
read_own = _reader(_own, "question and answer")
