"""Whether two LaTeX answers mean the same, by the math-verify library, in a process of its own that can be stopped.

A completion is anybody's text. What is too long or too deep to be an answer never reaches the library, and what takes
longer than the limit is a wrong answer and costs the process its life.
"""

import atexit
import logging
import multiprocessing as mp
import re
import signal
from functools import cache, lru_cache
from importlib.util import find_spec
from multiprocessing.connection import Connection

from unmask.errors import InputError
from unmask.tasks import rational
from unmask.tasks.d1 import same_math

LONGEST = 150
"""Longer answers must be the reference itself; the longest of MATH-500 has 53 characters."""
SECONDS = 2.0
MEMORY_BYTES = 4 * 2**30
EXPLOSIVE = re.compile(
    r"\^\s*(?:[0-9]+|[A-Za-z]|\{[^{}]*|\([^()]*)\s*\^|[({][^()a-z]*\^[^()a-z]*[)}]\s*\^|\^\s*[{(]?\s*-?[0-9]{3}"
    r"|[0-9]{40}|[0-9)}]\s*!|\\(?:sum|prod|int|lim)|(?:\|[^|]*){7}|(?:_[^_]*){7}"
)
"""Powers of powers, large powers, factorials, many bars: what makes a computer algebra system compute without end."""
DEEPEST = 5
BASE = re.compile(r"[0-9]_\s*\{?\s*([0-9]+)")
"""The base of a number, which the library reads over."""


def same(answer: str, truth: str) -> bool:
    r"""Whether an answer means the same as the reference.

    >>> same("\\frac12", "0.5"), same("1,000", "1000"), same("9^{9^{9^9}}", "9")
    (True, True, False)
    """
    if answer.strip() == truth.strip() or same_math(answer, truth):
        return True
    if len(answer) > LONGEST:
        return False
    numbers = rational.number(answer), rational.number(truth)
    if None not in numbers:
        return numbers[0] == numbers[1]
    formula = _formula(answer)
    bases = {tuple(BASE.findall(part)) for part in (formula, truth)} - {()}
    if not formula or len(bases) > 1 or _too_much(formula):
        return False
    return _worker().ask(formula, truth)


def _too_much(formula: str) -> bool:
    return bool(EXPLOSIVE.search(re.sub(r"\\(?:left|right)\b", "", formula))) or _depth(formula) > DEEPEST


def _formula(answer: str) -> str:
    """The one formula of an answer, out of its dollar signs or bold type; empty if there may be several."""
    text = re.sub(r"\$\$|(?<!\\)\\[()\[\]]", "$", answer).strip("* ").replace("**", "^")
    parts = re.split(r"(?<!\\)\$", text)
    held = [part for part in parts if part.strip()]
    if len(held) == 1:
        return held[0]
    formulas, words = parts[1::2], "".join(parts[::2])
    return formulas[0] if len(formulas) == 1 and not re.search(r"[0-9\\]", words) else ""


def _depth(text: str) -> int:
    depth = deepest = 0
    for char in text:
        depth += (char in "({[") - (char in ")}]")
        deepest = max(deepest, depth)
    return deepest


class Worker:
    """A process that compares; it is started when first needed and replaced when it had to be stopped."""

    def __init__(self) -> None:
        if find_spec("math_verify") is None:
            raise InputError("comparing LaTeX answers needs math-verify; pip install 'unmask[math]'")
        self.context = mp.get_context("spawn")
        self.process: mp.process.BaseProcess | None = None
        self.pipe: Connection | None = None
        self.ask = lru_cache(maxsize=10_000)(self._ask)
        atexit.register(self.stop)

    def _ask(self, answer: str, truth: str) -> bool:
        if self.process is None or not self.process.is_alive():
            self._start()
        assert self.pipe is not None
        try:
            self.pipe.send((answer, truth))
            if self.pipe.poll(SECONDS):
                return bool(self.pipe.recv())
        except (EOFError, OSError):
            pass
        self.stop()
        return False

    def _start(self) -> None:
        self.pipe, theirs = self.context.Pipe()
        self.process = self.context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        try:
            self.pipe.recv()  # the library is loaded
        except (EOFError, OSError):
            self.stop()
            raise InputError(
                "the process that compares LaTeX answers does not start; if this is a script of your own, put its work "
                'under `if __name__ == "__main__":`'
            ) from None

    def stop(self) -> None:
        """Stop the process, whatever it is doing."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
        if self.pipe is not None:
            self.pipe.close()
        self.process = self.pipe = None


@cache
def _worker() -> Worker:
    return Worker()


def _serve(pipe: Connection) -> None:
    """Answer questions until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other side is interrupted, and then gone
    logging.disable()  # the library warns that it has no time limit: it has ours
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    except (ImportError, ValueError, OSError):  # not every system can limit it
        pass
    from math_verify import parse, verify

    pipe.send(True)
    while True:
        try:
            answer, truth = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            given, wanted = (parse(f"${part}$", parsing_timeout=None) for part in (answer, truth))
            pipe.send(bool(verify(wanted, given, timeout_seconds=None)))
        except Exception:  # whatever the library makes of it, it is not the reference
            pipe.send(False)
