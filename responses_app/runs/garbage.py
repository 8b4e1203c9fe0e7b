"""Garbage collection of reference cycles while the process has little to do.

A collection looks at every object that was made since the last one, and stops all streams meanwhile: with 1,000 streams for
hundreds of milliseconds. Ended responses leave no cycles behind, so these collections free next to nothing.
"""

from __future__ import annotations

import asyncio
import gc
import time

# Thresholds of the automatic collections, a limit for the memory of cycles: a busy process makes so many more objects than it frees
# when about 1,000 streams begin.
THRESHOLDS = (500_000, 2, 1000)
# Seconds between looks, CPU seconds per second below which the process is idle, and objects from which a collection is worth it.
INTERVAL_S = 5.0
IDLE_SHARE = 0.2
MIN_OBJECTS = 20_000


async def collect_when_idle() -> None:
    """Collect all garbage after each quiet interval with many new objects, until cancelled."""
    while True:
        cpu = time.process_time()
        await asyncio.sleep(INTERVAL_S)
        collect_if_idle((time.process_time() - cpu) / INTERVAL_S)


def collect_if_idle(share: float) -> bool:
    """Collect all garbage if `share`, the CPU seconds per second, is small. Return whether a collection was made."""
    if share > IDLE_SHARE or gc.get_count()[0] < MIN_OBJECTS:
        return False
    gc.collect()
    return True
