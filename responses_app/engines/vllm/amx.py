"""AMX, the matrix unit of newer Intel CPUs: the kernel lets a process use it only after a request."""

from __future__ import annotations

import torch


def request_amx() -> bool:
    """Ask the kernel for AMX, for this process; return False if the CPU or the system has none.

    The attention of vLLM uses AMX for bfloat16 models and does not ask. oneDNN asks, at its first product that is large enough for
    AMX. A small model has no such product, and its worker would die of SIGILL in the warm-up.
    """
    return bool(torch.cpu._init_amx())
