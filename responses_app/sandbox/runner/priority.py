"""Priority of the processes of a container, set from outside: /proc is read-only in the container."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Final

from responses_app.sandbox.inside.interpreter import NICE

# Lowest priority that the kernel knows. Each step takes a fifth of the processor time away from a session beside another one.
LOWEST: Final = 19
STEP: Final = 1.25
# The process that ends first when memory is short.
OOM_SCORE = 1000
# Without CAP_SYS_ADMIN the kernel allows one change of an autogroup in 100 ms.
ATTEMPTS = 20
PAUSE_S = 0.02


def nice_of_run(running: int) -> int:
    """Return the nice value of the newest of `running` runs of a project.

    The weights of the runs fall harmonically, so that ten runs get three times as much of the processor as a single run.
    """
    return min(NICE + round(math.log(running, STEP)), LOWEST)


async def end_first(pid: int) -> None:
    """Set the highest OOM score of a process and the low priority of the session."""
    _write(pid, "oom_score_adj", OOM_SCORE)
    await set_nice(pid, NICE)


async def set_nice(pid: int, nice: int) -> None:
    """Set the priority of the session of a process, which exists where the kernel has autogroups."""
    for _ in range(ATTEMPTS):
        if _write(pid, "autogroup", nice):
            break
        await asyncio.sleep(PAUSE_S)


def _write(pid: int, file: str, value: int) -> bool:
    """Return False if a later attempt can succeed."""
    try:
        Path(f"/proc/{pid}/{file}").write_text(str(value))
    except BlockingIOError:
        return False
    except OSError:
        # The process has ended, belongs to bubblewrap's init, or the kernel has no such file.
        return True
    return True
