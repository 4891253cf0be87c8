"""unmask models, rules, doctor: what there is."""

import json
import os
import platform
import shutil
from importlib import metadata
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="For machines.")]


def models(as_json: Json = False) -> None:
    """List the models that can be named.

    Example: unmask models
    """
    from unmask.hub import listings

    lines = [vars(listing) for listing in listings()]
    if as_json:
        print(json.dumps(lines))
        return
    table(
        ["model", "family", "about", "here"],
        [[line["name"], line["family"], line["about"], "yes" if line["ready"] else "no"] for line in lines],
    )
    print("\nAny folder or hub id with a checkpoint of these families loads too: --model PATH or --model OWNER/NAME.")


def rules(as_json: Json = False) -> None:
    """List orders, EOS policies, schedules, profiles.

    Example: unmask rules
    """
    from unmask.profiles import PROFILES
    from unmask.rules import EOS, ORDERS, SAME_ORDER, SCHEDULES

    tables: dict[str, dict[str, dict[str, Any]]] = {
        kind: {
            name: {"usage": line.usage(name), "arguments": dict(line.arguments or {}), "summary": line.summary}
            for name, line in table.items()
        }
        for kind, table in (("order", ORDERS), ("eos", EOS), ("schedule", SCHEDULES))
    }
    tables["profile"] = {
        name: {"usage": name, "arguments": {}, "summary": profile.summary} for name, profile in PROFILES.items()
    }
    if as_json:
        print(json.dumps(tables))
        return
    for kind, lines in tables.items():
        rows = [[str(line["usage"]), str(line["summary"])] for line in lines.values()]
        table([f"--{kind}", "(arguments with their defaults)"], rows)
        print()
    print("Understood as well: " + ", ".join(f"{theirs} for {ours}" for theirs, ours in SAME_ORDER.items()) + ".")


def doctor(as_json: Json = False) -> None:
    """Print versions, devices, memory, what fits.

    Example: unmask doctor
    """
    report = _report()
    if as_json:
        print(json.dumps(report))
        return
    print("versions  " + ", ".join(f"{name} {version}" for name, version in report["versions"].items()))
    print(f"system    {report['system']}; {report['threads']} thread(s)")
    for device in report["devices"]:
        free = "unknown" if device["free_gib"] is None else f"{device['free_gib']:.1f} GiB"
        print(f"device    {device['name']}: {free} free; dtypes {', '.join(device['dtypes'])}; {device['note']}")
    print(f"cache     {report['cache']} ({report['cache_free_gib']:.0f} GiB free on its disk)\n")
    rows = [
        [name, f"{fit['gib']:.1f} GiB", *("fits" if fits else "too large" for fits in fit["fits"].values())]
        for name, fit in report["fits"].items()
    ]
    table(["model in dtype", "weights", *(device["name"] for device in report["devices"])], rows)


PARAMETERS = {"LLaDA-8B": 8_015_581_184, "Dream-7B": 7_615_616_512}
HEADROOM = 600 * 2**20
"""What a decode takes beside the weights."""


def _report() -> dict[str, Any]:
    import torch
    from huggingface_hub.constants import HF_HUB_CACHE

    from unmask import __version__
    from unmask.checkpoint import free_bytes
    from unmask.device import DTYPES, supports

    names = ["torch", "numpy", "safetensors", "tokenizers", "huggingface-hub"]
    names_of_devices = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    names_of_devices += ["mps"] if torch.backends.mps.is_available() else []
    devices = []
    free_of: dict[str, int | None] = {}
    for name in names_of_devices:
        device = torch.device(name)
        free_of[name] = free_bytes(device)
        note = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
        if device.type == "cpu":
            note += "; float16 is emulated, use bfloat16 or float32"
        devices.append(
            {
                "name": name,
                "free_gib": None if free_of[name] is None else free_of[name] / 2**30,  # type: ignore[operator]
                "dtypes": [kind for kind, dtype in DTYPES.items() if supports(dtype, device)],
                "note": note,
            }
        )
    existing = os.path.abspath(HF_HUB_CACHE)
    while not os.path.exists(existing):
        existing = os.path.dirname(existing)
    fits = {}
    for model, parameters in PARAMETERS.items():
        for kind in ("bfloat16", "float32"):
            size = parameters * DTYPES[kind].itemsize
            fits[f"{model} {kind}"] = {
                "gib": size / 2**30,
                "fits": {name: free is None or size + HEADROOM <= free for name, free in free_of.items()},
            }
    return {
        "versions": {"unmask": __version__, **{name: metadata.version(name) for name in names}},
        "system": f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
        "devices": devices,
        "cache": HF_HUB_CACHE,
        "cache_free_gib": shutil.disk_usage(existing).free / 2**30,
        "fits": fits,
    }


def table(head: list[str], rows: list[list[str]]) -> None:
    """Plain columns that survive a pipe."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
