"""Kill a web process at places around tool calls: `python -m tests.chaos.tool_calls`."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from responses_app.engines import orphan_guard
from responses_app.server.supervision import process_tree
from tests.chaos.findings import Findings
from tests.chaos.options import Options
from tests.chaos.proof import leftovers
from tests.chaos.report import report
from tests.chaos.tool_calls.drill import Drill
from tests.chaos.tool_calls.places import places
from tests.chaos.tool_calls.system import ToolSystem


async def run(kills: int, folder: Path, findings: Findings) -> None:
    """Start the system, kill at each place, and stop the system."""
    system = ToolSystem(folder, findings)
    try:
        await system.start()
        await Drill(system, findings).run(places(kills))
        await leftovers.check_nothing_held(system, findings)
    finally:
        await system.stop()
        await leftovers.check_connections_closed(system, findings)
        await system.stop_postgres()


def main(argv: Sequence[str]) -> int:
    """Run the drill and print its table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.tool_calls", description=__doc__)
    parser.add_argument("--kills", type=int, default=40, help="places of kills, at most 40 (default: %(default)s)")
    options, findings = parser.parse_args(argv), Findings()
    folder = Path(tempfile.mkdtemp(prefix="tool-calls-"))
    orphan_guard.guard_children(folder)
    process_tree.adopt_orphans()
    guards = frozenset(process_tree.descendants(os.getpid()))
    try:
        asyncio.run(run(options.kills, folder, findings))
    finally:
        process_tree.end_descendants(os.getpid(), spare=guards)
    print(report(Options(engine="script", web=2, responses=options.kills), findings))
    if findings.wrong:
        print(f"\nThe data of this run is in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
