"""From a model's name to its folder: the package's own, a local path, or a hub id. Never any code from a hub."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from unmask.backbones import FAMILIES
from unmask.errors import CheckpointError, InputError

TOY = "toy"
TINY = "tiny"
"""The model inside the package, and the default everywhere."""
PACKAGED = {TINY: Path(__file__).parent / "models" / TINY}
HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
FILES = [
    "config.json", "*.safetensors", "model.safetensors.index.json", "tokenizer.json", "tokenizer_config.json",
    "vocab.json", "merges.txt", "added_tokens.json", "chat_template.jinja", "chat_template.json",
]  # fmt: skip
"""All that is ever downloaded."""
FILES_WITHOUT_WEIGHTS = [pattern for pattern in FILES if pattern != "*.safetensors"]


@dataclass(frozen=True)
class Listing:
    """One line of `unmask models`."""

    name: str
    family: str
    about: str
    ready: bool
    """True if it loads without a download."""


def listings() -> list[Listing]:
    """The models that can be named, and whether they are here already."""
    lines = [
        Listing(TINY, "dream", "5 million weights inside the package; four small tasks", True),
        Listing(TOY, "toy", "a table that knows one sentence; no weights", True),
    ]
    for family in FAMILIES.values():
        for name, about in family.published.items():
            lines.append(Listing(name, family.name, about, cached_folder(name) is not None))
    return lines


def find_folder(name: str, *, revision: str | None = None, weights: bool = True) -> Path:
    """The local folder of a model, downloaded first if `name` is a hub id that is not in the cache."""
    if name in PACKAGED:
        return PACKAGED[name]
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise CheckpointError(f"{path} has no config.json; give the folder of a published checkpoint")
        return path
    if path.exists():
        raise CheckpointError(f"{path} is a file; give the folder of a published checkpoint")
    if not HUB_ID.fullmatch(name) or ".." in name or "--" in name:
        known = ", ".join([TINY, TOY, *(model for family in FAMILIES.values() for model in family.published)])
        raise InputError(f"model {name!r} is no folder here and no hub id (owner/name); known: {known}")
    folder = cached_folder(name, revision=revision, weights=weights)
    return folder if folder is not None else _download(name, revision, FILES if weights else FILES_WITHOUT_WEIGHTS)


def cached_folder(name: str, *, revision: str | None = None, weights: bool = True) -> Path | None:
    """The folder of a hub model in the local cache, if all its shards (or, without weights, its config) are there."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json", revision=revision)
    if not isinstance(found, str):
        return None
    folder = Path(found).parent
    if not weights:
        return folder
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return folder if (folder / "model.safetensors").is_file() else None
    from unmask.checkpoint import read_json

    shards = set(read_json(index).get("weight_map", {}).values())
    return folder if shards and all((folder / shard).is_file() for shard in shards) else None


def _download(name: str, revision: str | None, files: list[str]) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=files))
    except Exception as error:  # many kinds, from offline to not found; the user needs the one line
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"model {name!r} is not cached and cannot be downloaded: {reason}; give a local folder") from None
