"""Kills of a web process at places around tool calls."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.chaos.case import ChaosCase
from tests.chaos.findings import Findings
from tests.chaos.proof import leftovers
from tests.chaos.tool_calls.drill import ToolCallDrill
from tests.chaos.tool_calls.places import places
from tests.chaos.tool_calls.system import ToolSystem


async def run(options: argparse.Namespace, folder: Path, findings: Findings, _spare: frozenset[int]) -> None:
    """Start the system, kill at each place, and stop the system."""
    system = ToolSystem(folder, findings)
    try:
        await system.start()
        await ToolCallDrill(system, findings).run(places(options.kills))
        await leftovers.check_nothing_held(system, findings)
    finally:
        await system.stop()
        await leftovers.check_connections_closed(system, findings)
        await system.stop_postgres()


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--kills", type=int, default=40, help="places of kills, at most 40 (default: %(default)s)")


CASE = ChaosCase("kill a web process at places around tool calls", declare, run)
