"""The command line: parse, build, call. Text on stdout, progress on stderr, errors in one line.

Exit codes: 0 done, 1 failed (out of memory, a broken rule), 2 bad input. torch is imported inside the commands, so that
`--help` answers at once.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli.evaluate import evaluate
from unmask.cli.generate import generate
from unmask.cli.info import doctor, models, rules
from unmask.cli.pretrain import pretrain
from unmask.cli.replay import replay
from unmask.cli.tasks import tasks
from unmask.errors import InputError, UnmaskError

app = typer.Typer(
    name="unmask",
    help="Decode masked diffusion language models (LLaDA, Dream) in the order that works.\n\n"
    "Example: unmask generate 'What is 3x + 2 for x = 4?' --show-steps",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (generate, replay, evaluate, pretrain, models, rules, doctor):
    app.command()(command)
app.add_typer(tasks)


def _version(value: bool) -> None:
    if value:
        from unmask import __version__

        print(__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Decode masked diffusion language models (LLaDA, Dream) in the order that works.

    Example: unmask generate 'What is 3x + 2 for x = 4?' --show-steps
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def demo(picture: Annotated[Path | None, typer.Option(help="Also save what was decoded as an SVG picture.")] = None) -> None:
    """Decode one canvas in three ways, step by step.

    Example: unmask demo
    """
    from unmask.cli.demo import run_demo

    run_demo(picture)


def main() -> None:
    """The entry point of the `unmask` command."""
    try:
        code = app(standalone_mode=False)
    except UnmaskError as error:
        code = _complain(str(error), 2 if isinstance(error, InputError) else 1)
    except KeyboardInterrupt:
        code = _complain("stopped", 130)
    except BrokenPipeError:  # the reader of our output has gone; nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except UnicodeEncodeError as error:
        code = _complain(f"the output cannot be written as {error.encoding}; set PYTHONIOENCODING=utf-8", 1)
    except OSError as error:
        code = _complain(str(error), 1)
    except Exception as error:
        if type(error).__name__ == "Abort":
            code = _complain("stopped", 130)
        elif hasattr(error, "format_message"):  # a usage error of the command-line library, whichever it is
            code = _complain(" ".join(error.format_message().split()) + _given(getattr(error, "param", None)), 2)
        else:
            raise
    sys.exit(code or 0)


def _given(option: Any) -> str:
    """The value that a refused option was given, which the library leaves out of its message."""
    names = getattr(option, "opts", ())
    for word, following in zip(sys.argv, [*sys.argv[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in names:
            return f"; it was {value if equals else following!r}"
    return ""


def _complain(line: str, code: int) -> int:
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)
    print(f"unmask: {shown}", file=sys.stderr)
    return code
