"""Devices and dtypes: what there is, and what it can do."""

import torch

from unmask.errors import InputError, unknown

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def pick_device(name: str | None = None) -> torch.device:
    """The named device, or the best there is: cuda, mps, cpu."""
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    kind = name.partition(":")[0]
    if kind not in ("cpu", "cuda", "mps"):
        raise unknown("device", name, ["cpu", "cuda", "mps"])
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {name!r} is not available: torch {torch.__version__} finds no GPU; use cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise InputError("device 'mps' is not available on this machine; use cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device {name!r} is not a device; write for instance cuda:0") from None
    if kind == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device {name!r} does not exist; there are {torch.cuda.device_count()} GPUs, from cuda:0")
    return device


def pick_dtype(name: str | None, device: torch.device) -> torch.dtype:
    """The named dtype if the device has it; by default float32 on a CPU, bfloat16 elsewhere."""
    if name is None:
        if device.type == "cpu":
            return torch.float32
        return torch.bfloat16 if supports(torch.bfloat16, device) else torch.float16
    if name not in DTYPES:
        raise unknown("dtype", name, DTYPES)
    if not supports(DTYPES[name], device):
        able = ", ".join(other for other, dtype in DTYPES.items() if supports(dtype, device))
        raise InputError(f"dtype {name!r} is not supported by {device}; use one of: {able}")
    return DTYPES[name]


def supports(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether the device multiplies matrices in this dtype."""
    if device.type == "cuda" and dtype == torch.bfloat16 and not torch.cuda.is_bf16_supported(including_emulation=False):
        return False
    try:
        one = torch.ones(2, 2, dtype=dtype, device=device)
        return bool((one @ one).sum() == 8)
    except (RuntimeError, TypeError):
        return False
