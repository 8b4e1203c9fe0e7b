"""Run a chaos test of a whole system: `python -m tests.chaos`."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from responses_app.engines import orphan_guard
from responses_app.server.postgres.cluster import PostgresError
from responses_app.server.supervision import process_tree
from tests.chaos.options import parse
from tests.chaos.report import report
from tests.chaos.run import ChaosRun


def main(argv: Sequence[str]) -> int:
    """Run the chaos test; return the exit code."""
    options = parse(argv)
    folder = Path(options.folder or tempfile.mkdtemp(prefix="chaos-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    orphan_guard.guard_children(folder)
    process_tree.adopt_orphans()
    guards = frozenset(process_tree.descendants(os.getpid()))
    chaos_run = ChaosRun(options, folder, guards)
    try:
        asyncio.run(chaos_run.run())
    except (RuntimeError, PostgresError) as error:
        chaos_run.findings.contradict("run", "could not run", seen=error)
    except KeyboardInterrupt:
        chaos_run.findings.contradict("run", "was interrupted")
    finally:
        process_tree.end_descendants(os.getpid(), spare=guards)
    print(report(options, chaos_run.findings))
    if chaos_run.findings.wrong:
        print(f"\nThe data of this run is in {folder}")
        return 1
    if not options.folder:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
