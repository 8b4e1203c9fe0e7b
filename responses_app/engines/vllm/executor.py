"""Executor of vLLM for CPUs: the processes of the engine may use AMX, and wait for each other without spinning."""

from __future__ import annotations

import time

from vllm.distributed.device_communicators import shm_broadcast
from vllm.v1.executor.multiproc_executor import MultiprocExecutor

from responses_app.engines.vllm.amx import request_amx

# A step of a small model takes milliseconds.
PAUSE_S = 0.0001


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


# At import, because each process of the engine imports this module when the configuration is unpickled, before it makes its queues
# and runs the model.
request_amx()
shm_broadcast.SpinCondition = PausingCondition


class PausingExecutor(MultiprocExecutor):  # type: ignore[misc]
    """Executor whose processes pause while they wait for each other."""
