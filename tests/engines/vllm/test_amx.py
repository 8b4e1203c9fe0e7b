"""AMX: each process that imports the executor for CPUs has the permission of the kernel."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

# Prints the permitted states of the processor before and after the import of the executor: arch_prctl(ARCH_GET_XCOMP_PERM).
PROGRAM = """
import ctypes

def permitted():
    states = ctypes.c_ulong()
    assert ctypes.CDLL(None).syscall(158, 0x1022, ctypes.byref(states)) == 0
    return bool(states.value & 1 << 18)

before = permitted()
import responses_app.engines.vllm.executor
print(before, permitted())
"""


def has_amx() -> bool:
    """Return True on Linux with a processor that has AMX."""
    cpuinfo = Path("/proc/cpuinfo")
    return platform.machine() == "x86_64" and cpuinfo.exists() and " amx_tile" in cpuinfo.read_text()


@pytest.mark.slow
@pytest.mark.skipif(not has_amx(), reason="needs a processor with AMX")
def test_import_of_the_executor_permits_amx() -> None:
    """A process of its own: a permission lasts as long as the process."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["False", "True"], ran.stderr
