"""Priority of the processes of a container, set from outside: /proc is read-only in the container."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from responses_app.sandbox.inside.interpreter import NICE

# The process that ends first when memory is short.
OOM_SCORE = 1000
# Without CAP_SYS_ADMIN the kernel allows one change of an autogroup in 100 ms.
ATTEMPTS = 20
PAUSE_S = 0.02


async def lower(pids: Iterable[int]) -> None:
    """Lower the priority of processes, which their children inherit, and of the sessions of these processes.

    A session has a priority of its own where the kernel has autogroups.
    """
    for pid in pids:
        _write(pid, "oom_score_adj", OOM_SCORE)
        for _ in range(ATTEMPTS):
            if _write(pid, "autogroup", NICE):
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
