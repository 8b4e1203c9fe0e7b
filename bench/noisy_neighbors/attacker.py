"""The process of one attack; it has the lowest priority, as a real attacker does not use the processors of the server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from bench.noisy_neighbors.attacks import ATTACKS
from bench.noisy_neighbors.target import MeasuredTarget
from bench.noisy_neighbors.tool_attacks import TOOL_ATTACKS

MODULE = "bench.noisy_neighbors.attacker"
LOWEST_PRIORITY = 19


def command(name: str, target: MeasuredTarget, niceness: int = LOWEST_PRIORITY) -> list[str]:
    """Return the command line of this program."""
    return [sys.executable, "-m", MODULE, name, str(target.port), target.model, target.key, str(niceness)]


def main(arguments: Sequence[str]) -> None:
    """Attack until the process is killed."""
    name, port, model, key, niceness = arguments
    os.nice(int(niceness))
    asyncio.run(_run(name, MeasuredTarget(int(port), model, key)))


async def _run(name: str, target: MeasuredTarget) -> None:
    if name in TOOL_ATTACKS:
        await TOOL_ATTACKS[name](target)
    else:
        target.ready()
        await ATTACKS[name](target)


if __name__ == "__main__":
    main(sys.argv[1:])
