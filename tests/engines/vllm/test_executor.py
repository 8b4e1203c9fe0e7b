"""Executors for CPUs: the engine has one process on few CPUs, and processes that wait without spinning on more."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, pickle, time
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


@pytest.mark.slow
def test_engine_on_a_cpu_has_one_process_or_processes_that_pause() -> None:
    """A process of its own: the import of vLLM takes seconds, and replaces the condition for the whole process."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
