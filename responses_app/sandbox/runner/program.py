"""Program of the runner, started by the launcher inside the outer sandbox: `program DESCRIPTOR READY OPTIONS`."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from pathlib import Path

import uvicorn

from responses_app.sandbox import bubblewrap, system
from responses_app.sandbox.options import RunnerOptions
from responses_app.sandbox.runner.app import RunnerApp
from responses_app.sandbox.runner.containers import ContainerRegistry
from responses_app.sandbox.runner.single_runs import SingleRuns
from responses_app.utils.backoff import restart_after_errors

logger = logging.getLogger("responses.sandbox")

# Seconds after which a task goes on that has failed, for example without descriptors for /proc.
RESTART_AFTER_S = 1.0
# Seconds that running code may take after SIGTERM: calls that come meanwhile wait for the next runner.
STOP_LIMIT_S = 3


async def serve(listening: socket.socket, options: RunnerOptions, ready: int) -> None:
    """Serve until a signal. `ready` is a descriptor that gets a byte when the runner listens, or -1."""
    bwrap = bubblewrap.find_bubblewrap()
    containers = ContainerRegistry(Path(bubblewrap.WORK), bwrap, options)
    application = RunnerApp(containers, SingleRuns(bwrap, options), options).application()
    config = uvicorn.Config(
        application,
        loop="asyncio",
        http="h11",
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=STOP_LIMIT_S,
    )
    endless = (containers.watch_memory, containers.expire_regularly)
    tasks = [asyncio.ensure_future(restart_after_errors(work, RESTART_AFTER_S, logger)) for work in endless]
    if ready >= 0:
        os.write(ready, b"1")
        os.close(ready)
    try:
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        for task in tasks:
            task.cancel()
        await containers.close()


def main(descriptor: str, ready: str, options: str) -> None:
    """Serve on the inherited socket `descriptor`."""
    # Programs in inner sandboxes must not get the capability to mount.
    system.clear_ambient_capabilities()
    os.umask(0o022)
    with socket.socket(fileno=int(descriptor)) as listening:
        asyncio.run(serve(listening, RunnerOptions.from_json(options), int(ready)))


if __name__ == "__main__":
    main(*sys.argv[1:])
