"""Executors of vLLM for CPUs: the engine may use AMX, and runs in one process, or in processes that wait without spinning.

The processes of an engine find each other through a file in the folder of the engine's sockets.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import torch
from vllm import envs
from vllm.distributed.device_communicators import shm_broadcast
from vllm.v1.executor import multiproc_executor, uniproc_executor
from vllm.v1.executor.multiproc_executor import MultiprocExecutor
from vllm.v1.executor.uniproc_executor import UniProcExecutor

# A step of a small model takes milliseconds.
PAUSE_S = 0.0001
# With so few CPUs vLLM computes the model in one thread: it leaves a CPU to the scheduler.
FEW_CPUS = 2
# The user's binding of threads to CPUs, and options for several workers. vLLM obeys them with processes of their own only.
THREADS_VARIABLE = "VLLM_CPU_OMP_THREADS_BIND"
PARALLEL_OPTIONS = ("tensor_parallel_size", "pipeline_parallel_size")


class PausingCondition(shm_broadcast.SpinCondition):  # type: ignore[misc]
    """Condition that looks for a message each PAUSE_S seconds.

    vLLM's own condition spins and hardly releases the GIL. On a machine with few cores the thread that sends the tokens then waits
    until the generation is over, and a stream comes in one piece at its end.
    """

    def wait(self, timeout_ms: int | None = None) -> None:
        """Pause shortly behind a message; wait for the next message, up to `timeout_ms`, behind a second without any."""
        if time.monotonic() <= self.last_read + self.busy_loop_s:
            time.sleep(PAUSE_S)
        else:
            super().wait(timeout_ms)


def request_amx() -> bool:
    """Ask the kernel for AMX, the matrix unit of newer Intel CPUs, for this process; return False if the CPU or the system has none.

    The attention of vLLM uses AMX for bfloat16 models and does not ask. oneDNN asks, at its first product that is large enough for
    AMX. A small model has no such product, and its worker would die of SIGILL in the warm-up.
    """
    return bool(torch.cpu._init_amx())


def rendezvous() -> str:
    """Return the URL of a new file through which the engine's processes find each other (replaces a function of vLLM).

    vLLM places the file in the temporary folder, where a killed engine leaves it behind.
    """
    return f"file://{envs.VLLM_RPC_BASE_PATH}/vllm_dist_{uuid4().hex}"


# At import, because each process of the engine imports this module when the configuration is unpickled, before it makes its queues
# and runs the model.
request_amx()
shm_broadcast.SpinCondition = PausingCondition
multiproc_executor.get_file_store_init_method = uniproc_executor.get_file_store_init_method = rendezvous


class PausingExecutor(MultiprocExecutor):  # type: ignore[misc]
    """Executor whose processes pause while they wait for each other."""


class OneProcessExecutor(UniProcExecutor):  # type: ignore[misc]
    """Executor without a separate process: scheduler and model run in turn in the process of the engine, the model in a single thread.

    With a small model the messages between the processes and the waiting for them take a quarter of a step. vLLM refuses this on a
    CPU by the name `uni`, because it cannot bind several threads to CPUs in this way.
    """

    def _init_executor(self) -> None:
        torch.set_num_threads(1)
        super()._init_executor()


def cpu_executor(options: Mapping[str, Any]) -> type[MultiprocExecutor] | type[UniProcExecutor]:
    """Choose the executor for an engine on this machine: OneProcessExecutor if vLLM would compute in a single thread anyway."""
    if len(os.sched_getaffinity(0)) > FEW_CPUS or THREADS_VARIABLE in os.environ:
        return PausingExecutor
    return PausingExecutor if any(options.get(name, 1) != 1 for name in PARALLEL_OPTIONS) else OneProcessExecutor
