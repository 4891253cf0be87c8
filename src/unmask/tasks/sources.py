"""Published data files, and our own, as problems. A row that is not as published is refused by its number."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.errors import InputError
from unmask.files import json_lines
from unmask.tasks import countdown, sudoku
from unmask.tasks.problem import Problem

Reader = Callable[[Path | list[Mapping[str, Any]]], list[Problem]]


def _rows(source: Path | list[Mapping[str, Any]]) -> Iterable[Any]:
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
        try:
            return list(csv.DictReader(io.StringIO(text, newline="")))
        except csv.Error as error:
            raise InputError(f"{source} is not a CSV file ({error})") from None
    return json_lines(source, text)


def _reader(make: Callable[[Mapping[str, Any]], Problem], needs: str) -> Reader:
    def read(source: Path | list[Mapping[str, Any]]) -> list[Problem]:
        problems = []
        for number, row in enumerate(_rows(source), start=1):
            try:
                if not isinstance(row, Mapping):
                    raise TypeError(f"{row!r} is no object")
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
    if not math.isfinite(float(answer)):
        raise ValueError(f"{answer} is no number")
    return Problem(_text(row["question"]), answer)


def _math(row: Mapping[str, Any]) -> Problem:
    return Problem(_text(row["problem"]), _text(row["answer"]))


def _countdown(row: Mapping[str, Any]) -> Problem:
    if "facts" in row:
        own = _own(row)
        return replace(own, facts=countdown.facts(own.facts["numbers"], own.facts["target"]))
    if "input" in row:
        facts = countdown.facts([int(number) for number in row["input"].split(",")], int(row["output"]))
    else:
        facts = countdown.facts(row["nums"], row["target"])
    numbers, target = facts["numbers"], facts["target"]
    found = countdown.solve(numbers, target) if len(numbers) == 3 else None
    answer = row.get("solution") or (found.expression if found else "")
    return Problem(countdown.question(numbers, target), _text(answer), facts)


def _sudoku(row: Mapping[str, Any]) -> Problem:
    if "facts" in row:
        own = _own(row)
        return replace(own, facts=sudoku.facts(own.facts["puzzle"], own.answer), boxed=False)
    return Problem(sudoku.question(row["Puzzle"]), row["Solution"], sudoku.facts(row["Puzzle"], row["Solution"]), boxed=False)


def _own(row: Mapping[str, Any]) -> Problem:
    facts = dict(row.get("facts", {}))
    return Problem(_text(row["question"]), _text(row["answer"]), facts, boxed=bool(row.get("boxed", True)))


def _text(value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise TypeError(f"{value!r} is no text")
    return str(value)


read_gsm8k = _reader(_gsm8k, 'question and answer, ending in "#### 18"')
read_math = _reader(_math, "problem and answer")
read_countdown = _reader(_countdown, 'input "3,5,1" and output "12", or nums and target')
read_sudoku = _reader(_sudoku, "Puzzle and Solution, 16 digits each, 0 for empty")
read_own = _reader(_own, "question and answer")
