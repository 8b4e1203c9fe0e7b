"""Executor for CPUs: the processes of the engine wait for each other without spinning."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import pickle, time
from vllm.distributed.device_communicators import shm_broadcast
from responses_app.engines.vllm.args import engine_fields
from responses_app.engines.vllm.executor import PAUSE_S, PausingCondition, PausingExecutor

assert engine_fields("model", {"max_model_len": "512"})["distributed_executor_backend"] is PausingExecutor
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
def test_processes_of_an_engine_on_a_cpu_pause_behind_a_message() -> None:
    """A process of its own: the import of vLLM takes seconds, and replaces the condition for the whole process."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
