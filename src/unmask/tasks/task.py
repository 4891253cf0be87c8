"""A task: where its problems come from, how it asks, how it scores. One table; a further task is one line in it."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from unmask.errors import InputError, unknown
from unmask.tasks import d1, equivalence, strict
from unmask.tasks.extract import final
from unmask.tasks.families import sample
from unmask.tasks.problem import Problem, Split
from unmask.tasks.sources import Reader, read_countdown, read_gsm8k, read_math, read_own, read_sudoku
from unmask.text import ENVIRONMENT, Message

SCORERS = ("strict", "d1")
KINDS: Mapping[str, type] = {"version": int, "user": str, "prefill": str}
"""What a prompt file holds."""
PROBE = "12 + 34"
"""A question to try a prompt with."""


@dataclass(frozen=True)
class Score:
    """What a completion is worth."""

    right: int
    of: int = 1
    """Parts that could be right: the empty cells of a Sudoku, one elsewhere."""
    solved: bool = False
    """Everything is right; for a Sudoku, the whole puzzle."""

    @property
    def value(self) -> float:
        """Between 0 and 1."""
        return self.right / self.of if self.of else 0.0


Scorer = Callable[[Problem, str], Score]


@dataclass(frozen=True)
class Prompt:
    """How a task asks: a template of the user's message, and how the answer begins."""

    version: int
    user: str
    prefill: str = ""

    def prompt(self, question: str, *, chat: bool = True) -> str | list[Message]:
        """The messages that put the question, or the same as plain text for a model without a chat template."""
        try:
            asked = ENVIRONMENT.from_string(self.user.removeprefix("\n")).render(question=question)
        except Exception as error:  # a template may fail in any way; the sandbox keeps it from doing more than that
            raise InputError(f"the prompt template cannot be filled in: {error}") from None
        if not chat:
            return f"{asked}\n{self.prefill}" if self.prefill else asked
        answer: list[Message] = [{"role": "assistant", "content": self.prefill}] if self.prefill else []
        return [{"role": "user", "content": asked}, *answer]


@dataclass(frozen=True)
class Task:
    """Problems, a prompt and two scorers."""

    name: str
    about: str
    asks: str
    """The prompt file."""
    scorers: Mapping[str, Scorer]
    family: str | None = None
    """Our own generator, if it has one."""
    read: Reader = read_own
    """Reads the published data files."""
    hub: Mapping[str, str] = field(default_factory=dict)
    """Where the published test lies: `dataset`, `config`, `split`."""
    version: int = 1
    """Counts changes that change a score."""

    def problems(
        self,
        count: int,
        *,
        level: str = "easy",
        split: Split = "test",
        seed: int = 0,
        start: int = 0,
        data: str | Path | None = None,
    ) -> list[Problem]:
        """Problems from our own generator, or from a file of the published data ("hub" takes it from its hub)."""
        if count < 1:
            raise InputError(f"n={count} must be at least 1")
        if data is None:
            if self.family is None:
                raise InputError(
                    f"task {self.name!r} has no generator; give its published file with --data FILE, or --data hub"
                )
            return [sample(self.family, start + index, level=level, split=split, seed=seed) for index in range(count)]
        rows = self.published(data)
        if start + count > len(rows):
            raise InputError(f"{data} has {len(rows)} problems; n={count} from {start} on are too many")
        return rows[start : start + count]

    def published(self, data: str | Path) -> list[Problem]:
        """All problems of a file, or of the hub's data set."""
        if data != "hub":
            return self.read(Path(data))
        if not self.hub:
            raise InputError(f"task {self.name!r} is on no hub; give its file with --data FILE")
        try:
            from datasets import load_dataset  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise InputError("data from a hub needs the datasets library; pip install 'unmask[hub]'") from None
        try:
            rows = load_dataset(self.hub["dataset"], self.hub.get("config"), split=self.hub["split"])
        except Exception as error:  # many kinds, from offline to not found; the user needs the one line
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise InputError(f"data set {self.hub['dataset']!r} cannot be loaded: {reason}; give a local file") from None
        return self.read(list(rows))

    def prompt(self, name: str | Path | None = None) -> Prompt:
        """The task's own prompt, another by name, or one from a file."""
        return load_prompt(self.asks if name is None else str(name))

    def score(self, problem: Problem, completion: str, scorer: str = "strict") -> Score:
        """What a completion is worth, by one of the scorers."""
        if scorer not in self.scorers:
            raise unknown("scorer", scorer, self.scorers)
        return self.scorers[scorer](problem, completion)


@cache
def load_prompt(name: str) -> Prompt:
    """A prompt by the name of a file in the package, or from a file of one's own (a path that ends in .toml)."""
    folder = files("unmask.tasks") / "prompts"
    own = name.endswith(".toml")
    known = sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))
    if not own and name not in known:
        raise unknown("prompt", name, known)
    place: Any = Path(name) if own else folder / f"{name}.toml"
    try:
        raw = tomllib.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{place} is not a prompt file ({error})") from None
    wrong = [key for key, value in raw.items() if key not in KINDS or not isinstance(value, KINDS[key])]
    if wrong or not {"version", "user"} <= raw.keys():
        has = f"; wrong: {', '.join(wrong)}" if wrong else ""
        raise InputError(f"{place} must have version (a whole number), user (a text) and, if wanted, prefill (a text){has}")
    prompt = Prompt(**raw)
    try:
        asked = str(prompt.prompt(PROBE, chat=False))
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    if PROBE not in asked:
        raise InputError(f"{place} must have {{{{ question }}}} in its user text, where the question is to stand")
    return prompt


def _one(right: bool) -> Score:
    return Score(int(right), 1, right)


def _gsm8k_d1(problem: Problem, completion: str) -> Score:
    return _one(d1.gsm8k_number(completion) == float(problem.answer.replace(",", "")))


def _math_d1(problem: Problem, completion: str) -> Score:
    answer = d1.math_answer(completion)
    return _one(answer is not None and d1.same_math(answer, problem.answer))


def _math_strict(problem: Problem, completion: str) -> Score:
    answer = final(completion)
    return _one(answer is not None and equivalence.same(answer, problem.answer))


def _countdown_d1(problem: Problem, completion: str) -> Score:
    return _one(d1.countdown_right(completion, problem.facts["numbers"], problem.facts["target"]))


def _countdown_strict(problem: Problem, completion: str) -> Score:
    return _one(strict.reaches(completion, tuple(problem.facts["numbers"]), problem.facts["target"]))


def _sudoku_d1(problem: Problem, completion: str) -> Score:
    right, of = d1.sudoku_cells(completion, problem.facts["puzzle"], problem.answer)
    return Score(right, of, right == of)


def _sudoku_strict(problem: Problem, completion: str) -> Score:
    right, of = strict.cells(completion, problem.facts["puzzle"])
    return Score(right, of, strict.solves(completion, problem.facts["puzzle"]))


def _number(problem: Problem, completion: str) -> Score:
    return _one(strict.same_number(completion, problem.answer))


def _form(problem: Problem, completion: str) -> Score:
    return _one(strict.same_form(completion, problem.answer))


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("gsm8k", "grade-school word problems (Cobbe et al., 2021)", "gsm8k", {"strict": _number, "d1": _gsm8k_d1},
             read=read_gsm8k, hub={"dataset": "openai/gsm8k", "config": "main", "split": "test"}),
        Task("math500", "competition mathematics (Hendrycks et al., 2021; 500 problems)", "math500",
             {"strict": _math_strict, "d1": _math_d1}, read=read_math,
             hub={"dataset": "HuggingFaceH4/MATH-500", "split": "test"}),
        Task("countdown", "reach a target from three numbers", "countdown",
             {"strict": _countdown_strict, "d1": _countdown_d1}, family="countdown", read=read_countdown),
        Task("sudoku", "Sudoku 4x4, scored by empty cells", "sudoku", {"strict": _sudoku_strict, "d1": _sudoku_d1},
             family="sudoku", read=read_sudoku),
        Task("words", "our own word problems, 2-5 steps", "gsm8k", {"strict": _number, "d1": _gsm8k_d1}, family="words"),
        Task("algebra", "our own small problems about numbers and unknowns", "math500", {"strict": _form, "d1": _math_d1},
             family="algebra"),
        Task("sums", "our own bare sums, what the others are made of", "gsm8k", {"strict": _number, "d1": _gsm8k_d1},
             family="sums"),
    )
}  # fmt: skip


def find_task(name: str) -> Task:
    """A task by name."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]
