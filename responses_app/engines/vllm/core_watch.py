"""Watch over vLLM's core, which answers pings between the steps of the model alone."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any

from responses_app.engines.vllm.startup import kill_tree

logger = logging.getLogger(__name__)

PING_EVERY_S = 5.0
# A core that answers no ping is away after so many seconds without CPU time: less than BUSY_S seconds in each PING_EVERY_S.
AWAY_S = 60.0
BUSY_S = 0.05
# After so many it is killed, and so is a core whose step exceeds the limit of vLLM.
KILL_S = 180.0
# A longer pause between two ticks is a pause of this process, not of the core.
MAX_TICK_S = 2.0


class CoreWatch:
    """Watch of the core in `cores`, by ticks. `ping` returns when the core has ended the step that it computes.

    A step may take minutes on a CPU, and then uses CPU time. On a GPU, for which the core may wait without CPU time, a step takes
    seconds: vLLM computes a long prompt in parts. A step beyond `step_limit_s` is a hang in any case.
    """

    def __init__(
        self,
        ping: Callable[[], Awaitable[Any]],
        cores: Sequence[BaseProcess],
        step_limit_s: float,
        *,
        cpu_s: Callable[[Sequence[BaseProcess]], float | None] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._send_ping, self._cores, self._step_limit_s = ping, cores, step_limit_s
        self._read_cpu_s, self._clock = cpu_s or cpu_seconds, clock
        self._ping: asyncio.Future[Any] | None = None
        self._pinged_s = self._ticked_s = clock()
        self._measured_s = clock()
        self._cpu_s: float | None = None
        # Seconds without an answer, and of these the last ones without CPU time.
        self._silent_s = self._still_s = 0.0
        self._is_killed = False
        self.is_away = False

    def tick(self) -> None:
        """Ping the core again, or count the time in which it has not answered. Kill a core that hangs for too long."""
        now_s = self._clock()
        passed_s, self._ticked_s = min(now_s - self._ticked_s, MAX_TICK_S), now_s
        if self._ping is None or self._ping.done():
            self._count_answer(now_s)
        else:
            self._count_silence(now_s, passed_s)
            self._judge()

    def stop(self) -> None:
        """Give up a ping that waits."""
        if self._ping is not None:
            self._ping.cancel()

    def _count_answer(self, now_s: float) -> None:
        if self.is_away:
            self.is_away = False
            logger.info("vLLM's core answers again, after %.0f s", self._silent_s)
        self._silent_s = self._still_s = 0.0
        self._measured_s, self._cpu_s = now_s, None
        if self._ping is None or now_s - self._pinged_s >= PING_EVERY_S:
            self._pinged_s, self._ping = now_s, asyncio.ensure_future(self._send_ping())
            # The end of a core is noticed elsewhere.
            self._ping.add_done_callback(lambda ping: ping.cancelled() or ping.exception())

    def _count_silence(self, now_s: float, passed_s: float) -> None:
        self._silent_s += passed_s
        self._still_s += passed_s
        if now_s - self._measured_s < PING_EVERY_S:
            return
        self._measured_s, cpu_s = now_s, self._read_cpu_s(self._cores)
        # The sum becomes smaller at the end of a process.
        if cpu_s is None or self._cpu_s is None or not 0 <= cpu_s - self._cpu_s < BUSY_S:
            self._still_s = 0.0
        self._cpu_s = cpu_s

    def _judge(self) -> None:
        is_over = self._still_s >= KILL_S or self._silent_s >= self._step_limit_s
        if not self.is_away and (is_over or self._still_s >= AWAY_S):
            self.is_away = True
            logger.warning("vLLM's core has not answered for %.0f s; requests get 503, running responses wait", self._silent_s)
        if is_over and not self._is_killed:
            self._is_killed = True
            logger.error("vLLM's core has not answered for %.0f s: it is killed", self._silent_s)
            for core in filter(BaseProcess.is_alive, self._cores):
                kill_tree(core)


def cpu_seconds(cores: Sequence[BaseProcess]) -> float | None:
    """Return the CPU time of processes and their descendants; None if it cannot be read."""
    import psutil

    try:
        roots = [psutil.Process(core.pid) for core in cores]
        times = [one.cpu_times() for root in roots for one in (root, *root.children(recursive=True))]
    except psutil.Error:
        return None
    return sum(time.user + time.system for time in times) if times else None


def step_limit_s() -> float:
    """Return how long a step of the model may take: the limit of vLLM, which vLLM itself applies to some executors; none on a CPU."""
    from vllm import envs
    from vllm.platforms import current_platform

    return math.inf if current_platform.is_cpu() else float(envs.VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS)
