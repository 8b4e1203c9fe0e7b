"""Runner of the sandbox as a separate process, for tests."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from responses_app.sandbox.base import RunResult
from responses_app.sandbox.client import SandboxClient
from responses_app.sandbox.options import RunnerOptions

ROOT = Path(__file__).resolve().parents[3]
START_LIMIT_S = 900
# Packages are installed once for all tests of a machine.
PACKAGES = Path(tempfile.gettempdir()) / f"verbatim-test-packages-{os.getuid()}"
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Runner:
    url: str
    process: subprocess.Popen[bytes]

    def use(self, work: Callable[[SandboxClient], Awaitable[Result]]) -> Result:
        """Run `work` with a client of the runner."""

        async def main() -> Result:
            client = SandboxClient(self.url)
            try:
                return await work(client)
            finally:
                await client.close()

        return asyncio.run(main())

    def run(self, container_id: str, *codes: str) -> list[RunResult]:
        """Run codes in turn in a new container, and delete the container."""

        async def work(client: SandboxClient) -> list[RunResult]:
            await client.create(container_id)
            try:
                return [await client.run(container_id, code) for code in codes]
            finally:
                await client.delete(container_id)

        return self.use(work)


@contextmanager
def runner(
    folder: Path, options: RunnerOptions | None = None, *, with_packages: bool = False, packages: Path = PACKAGES
) -> Iterator[Runner]:
    """Start a runner whose socket is in `folder`, and kill it at the end. Another program installs the packages."""
    url = f"unix:{folder / 'sandbox.sock'}"
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "responses_app.sandbox.launch.launcher", "--folder", str(packages), "--listen", url]
    extra = [] if with_packages else ["--without-packages"]
    options = options or RunnerOptions()
    process = subprocess.Popen(
        [*command, *extra, "--ready", str(write_end), "--options", options.to_json()],
        pass_fds=[write_end],
        env={**os.environ, **options.environment(), "PYTHONPATH": str(ROOT)},
    )
    os.close(write_end)
    with os.fdopen(read_end, "rb") as ready:
        assert ready.read(1) == b"1", "the runner did not start; its message is in the output of the test"
    try:
        yield Runner(url, process)
    finally:
        process.kill()
        process.wait()
