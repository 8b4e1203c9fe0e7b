"""Kill parts of a running system and check that nothing is lost: `python -m tests.chaos CASE`."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from responses_app.engines import orphan_guard
from responses_app.server.postgres.cluster import PostgresError
from responses_app.server.supervision import process_tree
from tests.chaos import races, restarts, run
from tests.chaos.case import ChaosCase
from tests.chaos.findings import Findings
from tests.chaos.report import report
from tests.chaos.server_tools import attacks, kills
from tests.chaos.tool_calls import kills as tool_calls

CASES = {
    "system": run.CASE,
    "restarts": restarts.CASE,
    "races": races.CASE,
    "tool-calls": tool_calls.CASE,
    "server-tools": kills.CASE,
    "attacks": attacks.CASE,
}


def main(argv: Sequence[str]) -> int:
    """Run a case and print the table; return the exit code."""
    name, options = _parse(argv)
    case, findings = CASES[name], Findings()
    folder = Path(options.folder or tempfile.mkdtemp(prefix=f"chaos-{name}-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # Processes in the sandbox have another user.
    folder.chmod(0o755)
    run_case(case, options, folder, findings)
    print(report(name, options, findings))
    if findings.wrong:
        print(f"\nThe data of this run is in {folder}")
        return 1
    if not options.folder:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def run_case(case: ChaosCase, options: Any, folder: Path, findings: Findings) -> None:
    """Run a case, and end every process that the case has started."""
    if case.adopts_orphans:
        orphan_guard.guard_children(folder)
        process_tree.adopt_orphans()
    spare = frozenset(process_tree.descendants(os.getpid()))
    try:
        asyncio.run(_awaited(case, options, folder, findings, spare))
    except (RuntimeError, PostgresError) as error:
        findings.contradict("run", "could not run", seen=error)
    except KeyboardInterrupt:
        findings.contradict("run", "was interrupted")
    finally:
        process_tree.end_descendants(os.getpid(), spare=spare)


async def _awaited(case: ChaosCase, options: Any, folder: Path, findings: Findings, spare: frozenset[int]) -> None:
    await case.run(options, folder, findings, spare)


def _parse(argv: Sequence[str]) -> tuple[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    commands = parser.add_subparsers(dest="case", metavar="CASE", required=True)
    for name, case in CASES.items():
        command = commands.add_parser(name, help=case.summary, description=case.summary)
        case.declare(command)
        command.add_argument("--folder", help="folder for all data, which stays; by default a temporary folder")
    options = parser.parse_args(argv)
    return options.case, CASES[options.case].complete(parser, options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
