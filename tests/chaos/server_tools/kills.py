"""Kills of the web process, the runner of the sandbox and the server during code, uploads and ingestions."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.chaos.case import ChaosCase
from tests.chaos.findings import Findings
from tests.chaos.server_tools.drill import CASES, CODES, ServerToolDrill
from tests.chaos.server_tools.target import ServerTarget


async def run(options: argparse.Namespace, folder: Path, findings: Findings, _spare: frozenset[int]) -> None:
    """Start the server, run the numbered kills, and end the server."""
    target = ServerTarget(folder, CODES)
    try:
        target.start()
        drill = ServerToolDrill(target, findings, options.megabytes)
        for number in options.kills:
            drill.run(*CASES[number])
            sys.stdout.write(f"{findings.rows[-1][0]}: {findings.rows[-1][1]}; {len(findings.wrong)} contradictions\n")
            sys.stdout.flush()
        drill.end()
    finally:
        target.server.end()


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--kills", type=int, nargs="*", default=range(len(CASES)), help=f"numbers below {len(CASES)}")
    parser.add_argument("--megabytes", type=int, default=200, help="size of an upload (default: %(default)s)")


CASE = ChaosCase("kill processes during code, uploads and ingestions", declare, run, adopts_orphans=False)
