"""What a number came from: versions, device, commit."""

import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from unmask import __version__


def stamp(device: torch.device) -> dict[str, Any]:
    """What must stand beside every result."""
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else f"{device.type} {platform.machine()}",
        "threads": torch.get_num_threads(),
        "versions": {"unmask": __version__, "torch": torch.__version__, "tokenizers": metadata.version("tokenizers")},
        "commit": commit(),
    }


@cache
def commit() -> str | None:
    """The commit of the checkout that this code runs from, with a + if files differ from it; None where there is none."""
    here = Path(__file__).resolve().parent
    try:
        command = ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
        found = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None
