"""Which numbers of rows, and which functions, give float32 bits of their own on this machine; see docs/exactness.md.

python benchmarks/bits.py
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

SHAPES = [(64, 200), (256, 1024), (1024, 256), (100, 333)]
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp, "log": lambda x: x.abs().log(), "log1p": lambda x: x.abs().log1p(), "tanh": torch.tanh,
    "logaddexp": lambda x: torch.logaddexp(x, torch.zeros_like(x)), "sigmoid": torch.sigmoid,
}  # fmt: skip


def rows_with_own_bits(threads: int) -> list[int]:
    """Numbers of rows up to 64 at which `linear` differs from the same rows in a product of 128."""
    generator = torch.Generator().manual_seed(0)
    found = set()
    for size, out in SHAPES:
        weight, x = torch.randn(out, size, generator=generator), torch.randn(128, size, generator=generator)
        torch.set_num_threads(2)
        whole = F.linear(x, weight)
        torch.set_num_threads(threads)
        found |= {rows for rows in range(1, 65) if not torch.equal(F.linear(x[:rows].contiguous(), weight), whole[:rows])}
    return sorted(found)


def depends_on_place(function: Callable[[Tensor], Tensor]) -> bool:
    """Whether an element's result depends on where in the tensor it lies."""
    x = torch.randn(4096, generator=torch.Generator().manual_seed(0)) * 5
    parts = [torch.cat([function(part.clone()) for part in x.split(size)]) for size in (1, 3, 7, 17, 33)]
    return any(not torch.equal(part, function(x)) for part in parts)


if __name__ == "__main__":
    for threads in (1, 2):
        print(f"{threads} thread(s): rows with bits of their own: {rows_with_own_bits(threads)}")
    print("depend on the place: " + ", ".join(name for name, function in FUNCTIONS.items() if depends_on_place(function)))
    print(f"torch {torch.__version__}, float32, cpu, seed 0")
