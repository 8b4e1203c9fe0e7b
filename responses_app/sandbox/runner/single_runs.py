"""Single runs: a module of the server in a separate sandbox, for the parsing of hostile files."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import IO

from responses_app.sandbox import bubblewrap
from responses_app.sandbox.base import OnceLimits, OnceResult, SandboxBusy, SandboxUnavailable
from responses_app.sandbox.options import RunnerOptions
from responses_app.sandbox.runner import process_table, sandboxed_process
from responses_app.utils.shares import ProjectShares, ShareExceeded

CHUNK_BYTES = 1 << 16
MAX_STDERR_BYTES = 100_000
WATCH_INTERVAL_S = 0.1


class SingleRuns:
    """Single runs, a limited number at the same time. Projects take turns."""

    def __init__(self, bwrap: str, options: RunnerOptions) -> None:
        self._bwrap, self._options = bwrap, options
        self._places = ProjectShares(options.max_single_runs, wait_s=None)

    async def run(
        self, project: str, module: str, arguments: Sequence[str], stdin: AsyncIterator[bytes], limits: OnceLimits
    ) -> OnceResult:
        """Run `module` for `project`. Raises SandboxBusy, SandboxUnavailable."""
        try:
            async with self._places.place(project):
                return await self._run(module, arguments, stdin, limits)
        except ShareExceeded:
            raise SandboxBusy("too many files wait for the sandbox") from None

    async def _run(self, module: str, arguments: Sequence[str], stdin: AsyncIterator[bytes], limits: OnceLimits) -> OnceResult:
        memory_mib = min(limits.memory_mib, self._options.memory_mib)
        resources = json.dumps(_resources(memory_mib, limits))
        try:
            process = sandboxed_process.start(
                self._bwrap,
                bubblewrap.once_arguments,
                bubblewrap.once_program(module, arguments, resources),
                bubblewrap.interpreter_environment(1),
                stdin=subprocess.PIPE,
            )
        except OSError as error:
            raise SandboxUnavailable(f"the sandbox did not start: {error}") from error
        exchange = _Exchange(process, limits.output_bytes)
        try:
            problem = await exchange.run(stdin, limits.wall_s, memory_mib)
        finally:
            code = await asyncio.shield(exchange.close())
        return OnceResult(code, bytes(exchange.stdout), exchange.stderr.decode(errors="replace"), problem)


class _Exchange:
    """Input and output of a single run."""

    def __init__(self, process: subprocess.Popen[bytes], output_bytes: int) -> None:
        self._process, self._output_bytes = process, output_bytes
        self.stdout, self.stderr = bytearray(), bytearray()
        self._problem: str | None = None
        self._code: int | None = None

    async def run(self, stdin: AsyncIterator[bytes], wall_s: float, memory_mib: int) -> str | None:
        """Return None, or the limit that ended the run. Raises SandboxUnavailable if the limit of memory cannot be kept."""
        assert self._process.stdout is not None  # noqa: S101 - pipes are set
        assert self._process.stderr is not None  # noqa: S101
        reading = asyncio.gather(
            self._read(self._process.stdout, self.stdout, self._output_bytes),
            self._read(self._process.stderr, self.stderr, MAX_STDERR_BYTES),
        )
        others = [asyncio.ensure_future(self._write(stdin)), asyncio.ensure_future(self._watch_memory(memory_mib))]
        try:
            async with asyncio.timeout(wall_s):
                await reading
                self._code = await asyncio.to_thread(self._process.wait)
        except TimeoutError:
            self._problem = f"more than {wall_s:g} seconds"
        finally:
            for task in others:
                task.cancel()
            _, unwatched = await asyncio.gather(*others, return_exceptions=True)
        if isinstance(unwatched, Exception):
            raise SandboxUnavailable(f"the memory of the run cannot be read: {unwatched}") from unwatched
        return self._problem

    async def close(self) -> int:
        """End the process and return the exit code."""
        code = await sandboxed_process.stop(self._process) if self._code is None else self._code
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        return code

    async def _read(self, stream: IO[bytes], data: bytearray, limit: int) -> None:
        descriptor = stream.fileno()
        os.set_blocking(descriptor, False)
        while True:
            await _readable(descriptor)
            chunk = os.read(descriptor, CHUNK_BYTES)
            if not chunk:
                return
            data += chunk[: limit - len(data)]
            if len(data) >= limit and self._problem is None:
                self._end(f"more than {limit} bytes of output")

    async def _write(self, stdin: AsyncIterator[bytes]) -> None:
        stream = self._process.stdin
        assert stream is not None  # noqa: S101 - a pipe is set
        os.set_blocking(stream.fileno(), False)
        with suppress(OSError):  # The program may end before it has read all.
            async for chunk in stdin:
                view = memoryview(chunk)
                while view:
                    await _writable(stream.fileno())
                    view = view[os.write(stream.fileno(), view[:CHUNK_BYTES]) :]
            stream.close()

    async def _watch_memory(self, memory_mib: int) -> None:
        limit = memory_mib * 1024 * 1024
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            try:
                used = await asyncio.to_thread(process_table.memory_in_use_now, self._process.pid, limit)
            except Exception:
                self._process.kill()
                raise
            if used > limit:
                self._end(f"more than {memory_mib} MiB of memory")

    def _end(self, problem: str) -> None:
        self._problem = problem
        self._process.kill()


async def _readable(descriptor: int) -> None:
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


async def _writable(descriptor: int) -> None:
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_writer(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(descriptor)


def _resources(memory_mib: int, limits: OnceLimits) -> dict[str, int]:
    return {
        "RLIMIT_AS": memory_mib * 1024 * 1024,
        "RLIMIT_CPU": int(limits.wall_s) + 1,
        "RLIMIT_NPROC": 32,
        "RLIMIT_FSIZE": bubblewrap.TEMPORARY_BYTES,
        "RLIMIT_NOFILE": 256,
        "RLIMIT_SIGPENDING": 256,
        "RLIMIT_CORE": 0,
    }
