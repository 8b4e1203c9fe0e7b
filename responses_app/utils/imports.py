"""Imports of a starting process with few collections of garbage, which take a fifth of the time: imports leave next to none."""

from __future__ import annotations

import gc
import sys
from typing import Final

# Thresholds of the automatic collections. Python's own are 700, 10 and 10; an import of vLLM makes a million objects.
THRESHOLDS: Final = (50_000, 10, 10)
# Name of the main module in the processes that `multiprocessing` spawns: vLLM's, which import vLLM after that module.
SPAWNED: Final = "__mp_main__"
# Option of Python for child processes: the current folder, where a user calls the command, has no modules for these either.
SAFE_PATH: Final = ("-P",) if sys.flags.safe_path else ()


def collect_rarely() -> None:
    """Collect garbage less often in this process, from now on. Call before long imports."""
    gc.set_threshold(*THRESHOLDS)
