"""Probe of the machine, run in the runner's sandbox: starts an interpreter and runs an expression."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path

from responses_app.sandbox import bubblewrap, system
from responses_app.sandbox.launch.launcher import RUNNER
from responses_app.sandbox.options import RunnerOptions
from responses_app.sandbox.runner.containers import ContainerRegistry

ANSWER = "the sandbox works"


async def probe() -> str | None:
    """Return the value of an expression that ran in a container. Raises SandboxError, ImportError."""
    # The runner needs more packages than the expression.
    importlib.import_module(RUNNER)
    registry = ContainerRegistry(Path(bubblewrap.WORK), bubblewrap.find_bubblewrap(), RunnerOptions(disk_mib=1))
    await registry.create("probe", "1g")
    async with registry.use("probe") as container:
        result = await container.run(repr(ANSWER), lambda _stream, _text: None)
    await registry.close()
    return result.value


if __name__ == "__main__":
    system.clear_ambient_capabilities()
    print(asyncio.run(probe()))  # noqa: T201 - the answer for the parent process
