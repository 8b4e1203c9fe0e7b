"""Executors for CPUs: one process on few CPUs, processes that wait without spinning on more, and the permission to use AMX."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, os, pickle, time

def amx():
    # The permitted states of the processor: arch_prctl(ARCH_GET_XCOMP_PERM).
    states = ctypes.c_ulong()
    return ctypes.CDLL(None).syscall(158, 0x1022, ctypes.byref(states)) == 0 and bool(states.value & 1 << 18)

before = amx()
import responses_app.engines.vllm.executor
print("AMX", before, amx())

from vllm.distributed.device_communicators import shm_broadcast
from responses_app.engines.vllm.args import engine_fields
from responses_app.engines.vllm.executor import PAUSE_S, OneProcessExecutor, PausingCondition, PausingExecutor

def chosen(cpus, **options):
    os.sched_getaffinity = lambda _: set(range(cpus))
    return engine_fields("model", {"max_model_len": "512", **options})["distributed_executor_backend"]

assert chosen(3) is PausingExecutor
assert chosen(2) is chosen(1) is OneProcessExecutor
assert chosen(2, tensor_parallel_size="2") is PausingExecutor
os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "0"
assert chosen(2) is PausingExecutor
named = engine_fields("model", {"max_model_len": "512", "distributed_executor_backend": "mp"})
assert named["distributed_executor_backend"] == "mp"
assert pickle.loads(pickle.dumps(PausingExecutor)) is PausingExecutor
assert shm_broadcast.SpinCondition is PausingCondition

pauses = []
time.sleep = pauses.append
condition = object.__new__(PausingCondition)
condition.is_reader, condition.busy_loop_s, condition.last_read = True, 1, time.monotonic()
condition.wait()
assert pauses == [PAUSE_S], pauses
"""


@pytest.fixture(scope="module")
def ran() -> subprocess.CompletedProcess[str]:
    """Run the program: a separate process, as the import of vLLM takes seconds, and replaces the condition for the whole process."""
    return subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_engine_on_a_cpu_has_one_process_or_processes_that_pause(ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 0, ran.stderr


def has_amx() -> bool:
    """Return True on Linux with a processor that has AMX."""
    cpuinfo = Path("/proc/cpuinfo")
    return platform.machine() == "x86_64" and cpuinfo.exists() and " amx_tile" in cpuinfo.read_text()


@pytest.mark.slow
@pytest.mark.skipif(not has_amx(), reason="needs a processor with AMX")
def test_import_of_the_executor_permits_amx(ran: subprocess.CompletedProcess[str]) -> None:
    """A permission lasts as long as the process."""
    assert "AMX False True" in ran.stdout.splitlines(), ran.stderr
