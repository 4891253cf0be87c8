"""What the core costs: recording, exact against fused batches, and the peak memory of loading.

    python benchmarks/core.py            a table, and one JSON line last

Everything is a ratio of interleaved runs on random weights in LLaDA's layout; seed 0, float32, CPU.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from unmask import OPEN, Canvas, decode_steps, eos_annealed, load_backbone, probability_margin, progressive_counts, top_by
from unmask.backbones import FAMILIES
from unmask.checkpoint import random_tensors, save_checkpoint
from unmask.record import Recorder

SMALL = {"d_model": 256, "n_layers": 6, "n_heads": 4, "mlp_hidden_size": 768, "vocab_size": 512}
MEDIUM = {"d_model": 768, "n_layers": 8, "n_heads": 12, "mlp_hidden_size": 2048, "vocab_size": 32768}
LARGE = {"d_model": 2048, "n_layers": 16, "n_heads": 16, "mlp_hidden_size": 5632, "vocab_size": 126464}
REPEATS = 5


def checkpoint(folder: str, size: dict[str, int], dtype: torch.dtype = torch.float32, shards: int = 2) -> str:
    """Random weights in LLaDA's published layout."""
    raw = {
        "model_type": "llada", "max_sequence_length": 4096, "rope_theta": 500000.0, "mask_token_id": size["vocab_size"] - 1,
        "eos_token_id": size["vocab_size"] - 2, **size,
    }  # fmt: skip
    family = FAMILIES["llada"]
    save_checkpoint(folder, raw, dict(random_tensors(family, family.config(raw, {}), seed=0, dtype=dtype)), shards=shards)
    return folder


def compare(first: Callable[[], object], second: Callable[[], object]) -> dict[str, float]:
    """Median seconds of each, taken in turns, and the ratio of the second to the first with its spread."""
    times: list[tuple[float, float]] = []
    first(), second()
    for _ in range(REPEATS):
        pair = []
        for run in (first, second):
            start = time.perf_counter()
            run()
            pair.append(time.perf_counter() - start)
        times.append((pair[0], pair[1]))
    ratios = sorted(b / a for a, b in times)
    return {
        "first_s": statistics.median(a for a, _ in times), "second_s": statistics.median(b for _, b in times),
        "ratio": statistics.median(ratios), "ratio_low": ratios[1], "ratio_high": ratios[-2],
    }  # fmt: skip


def decoding(model: object, rows: int, *, record: bool = False, fused: bool = False) -> Callable[[], None]:
    """A decode of `rows` prompts of 64 tokens with a window of 128 in 32 steps."""
    canvas = Canvas.of([[3 + row] * 64 + [OPEN] * 128 for row in range(rows)])
    select = top_by(probability_margin, rank=eos_annealed())

    def run() -> None:
        recorder = Recorder(canvas, model.mask_id)  # type: ignore[attr-defined]
        for step in decode_steps(model, canvas, counts=progressive_counts(128, 32), select=select, fused=fused):  # type: ignore[arg-type]
            if record:
                recorder.add(step)
        if record:
            recorder.finish()

    return run


def peak() -> None:
    """In a process of its own: load a checkpoint and print its bytes and the peak of resident memory."""
    model = load_backbone(sys.argv[2], dtype=getattr(torch, sys.argv[3]))
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    status = Path("/proc/self/status").read_text()  # ru_maxrss would begin with what the parent process had
    print(json.dumps([weights, int(status.split("VmHWM:")[1].split()[0]) * 1024]))


def main() -> None:
    """Measure and print."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, size in (("small", SMALL), ("medium", MEDIUM)):
            model = load_backbone(checkpoint(f"{folder}/{name}", size))
            found[f"recording, {name}, batch 1"] = compare(decoding(model, 1), decoding(model, 1, record=True))
            rows = 8 if name == "small" else 2
            found[f"exact over fused, {name}, batch {rows}"] = compare(decoding(model, rows, fused=True), decoding(model, rows))
        checkpoint(f"{folder}/large", LARGE, torch.bfloat16, shards=4)
        for dtype in ("bfloat16", "float32"):
            done = subprocess.run(
                [sys.executable, str(Path(__file__)), "--peak", f"{folder}/large", dtype],
                capture_output=True,
                text=True,
                check=True,
            )
            weights, most = json.loads(done.stdout)
            limit = 1.05 * weights + 2**30
            found[f"loading bfloat16 as {dtype}"] = {
                "weights_gib": weights / 2**30,
                "peak_gib": most / 2**30,
                "ratio": most / limit,
            }
    for name, numbers in found.items():
        print(f"{name:<42}", "  ".join(f"{key} {value:.3f}" for key, value in numbers.items()))
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), **found}))


if __name__ == "__main__":
    peak() if "--peak" in sys.argv else main()
