"""Case of the chaos test: a name on the command line, options, and a run in a folder."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.findings import Findings


@dataclass(frozen=True, slots=True)
class ChaosCase:
    """Case of the chaos test.

    `declare` adds the options, and `complete` fills those that depend on others. `run` gets the options, the folder for all
    data, the findings to fill, and the processes that are no part of the system.
    """

    summary: str
    declare: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Any, Path, Findings, frozenset[int]], Awaitable[None]]
    complete: Callable[[argparse.ArgumentParser, argparse.Namespace], Any] = lambda _, options: options
    # Whether orphans of killed processes become children of this process.
    adopts_orphans: bool = True
