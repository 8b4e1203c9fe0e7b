"""Executors of vLLM for CPUs.

Also the permission to use AMX, and vLLM without Inductor.
"""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from responses_app.engines.vllm import inductor

PROGRAM = """
import ctypes, os, pickle, time

def amx():
    # The permitted states of the processor: arch_prctl(ARCH_GET_XCOMP_PERM).
    states = ctypes.c_ulong()
    return ctypes.CDLL(None).syscall(158, 0x1022, ctypes.byref(states)) == 0 and bool(states.value & 1 << 18)

from responses_app.engines.vllm.inductor import LOWERING, NO_COMPILATION, prepare_spawned_process, return_unchanged

os.environ.update([NO_COMPILATION])
prepare_spawned_process()
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

import sys, torch, vllm.v1.engine.async_llm, vllm.v1.engine.core, vllm.v1.worker.cpu_worker
if not (torch.version.cuda or torch.version.hip):
    assert torch.compile is return_unchanged
    assert LOWERING not in sys.modules
    from torch._inductor import lowering
    assert lowering.lowerings, "a module that needs Inductor still gets it"

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


def test_inductor_is_left_out_only_where_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    finders = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", list(finders))
    monkeypatch.delitem(sys.modules, inductor.FIRST_MODULE, raising=False)
    monkeypatch.delenv(inductor.NO_COMPILATION[0], raising=False)
    inductor.prepare_spawned_process()
    assert sys.meta_path == finders
    monkeypatch.setenv(*inductor.NO_COMPILATION)
    for _ in range(2):
        inductor.prepare_spawned_process()
        assert len(sys.meta_path) == len(finders) + 1
    assert importlib.util.find_spec("json")
    assert len(sys.meta_path) == len(finders) + 1, "other imports leave the finder"


def test_functions_that_would_be_compiled_stay_as_they_are() -> None:
    assert inductor.return_unchanged(len) is len
    assert inductor.return_unchanged(dynamic=True)(len) is len
