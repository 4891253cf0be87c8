"""Write the page of the command line from its own help: `python -m unmask.cli.reference docs/cli.md [--check]`."""

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = [
    "", "generate", "replay", "evaluate", "tasks", "tasks list", "tasks sample", "tasks score", "pretrain", "models", "rules",
    "doctor", "demo",
]  # fmt: skip
RUN = "import sys; sys.argv[0] = 'unmask'; from unmask.cli import main; main()"


def page() -> str:
    """The page, as Markdown."""
    parts = ["# Command line\n\nWritten by `make help-page` from `--help`; do not edit by hand.\n"]
    for command in COMMANDS:
        name = f"unmask {command}".strip()
        done = subprocess.run(
            [sys.executable, "-c", RUN, *command.split(), "--help"], capture_output=True, text=True, check=True,
            env={**os.environ, "COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"},
        )  # fmt: skip
        help_text = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
        parts.append(f"## {name}\n\n```text\n{help_text}\n```\n")
    return "\n".join(parts)


def main() -> int:
    """Write the page, or with --check only say whether it is up to date."""
    path, check = Path(sys.argv[1]), "--check" in sys.argv
    text = page()
    if check:
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            print(f"{path} is out of date; run make help-page", file=sys.stderr)
            return 1
        return 0
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
