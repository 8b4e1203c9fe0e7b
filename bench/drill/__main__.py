"""`manage.py drill`, or `python -m bench.drill`."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.drill.drill import Drill
from bench.drill.options import parse
from bench.drill.table import report
from responses_app.engines import orphan_guard
from responses_app.server.postgres.cluster import PostgresError
from responses_app.server.processes import process_tree


def main(argv: Sequence[str]) -> int:
    """Run to the end; the exit code."""
    options = parse(argv)
    folder = Path(options.folder or tempfile.mkdtemp(prefix="drill-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    orphan_guard.guard_children(folder)
    process_tree.adopt_orphans()
    guards = frozenset(process_tree.descendants(os.getpid()))
    drill = Drill(options, folder, guards)
    try:
        asyncio.run(drill.run())
    except (RuntimeError, PostgresError) as error:
        drill.findings.contradict("drill", "could not be held", seen=error)
    except KeyboardInterrupt:
        drill.findings.contradict("drill", "was interrupted")
    finally:
        process_tree.end_descendants(os.getpid(), spare=guards)
    print(report(options, drill.findings))
    if drill.findings.wrong:
        print(f"\nEverything is kept in {folder}")
        return 1
    if not options.folder:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
