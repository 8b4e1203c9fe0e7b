"""Interpreter of a container, for the runner: start, run code within limits, end."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from responses_app.sandbox import bubblewrap
from responses_app.sandbox.base import OnOutput, SandboxUnavailable
from responses_app.sandbox.inside.interpreter import CODE, FIGURE, HEADER, NICE, READY, RESULT, STARTUP, TOKEN_BYTES
from responses_app.sandbox.options import RunnerOptions
from responses_app.sandbox.runner import cgroups, priority, process_table, sandboxed_process
from responses_app.sandbox.runner.output import OutputReader

START_LIMIT_S = 30.0
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
# Parsing a result occupies the event loop, which also watches the memory of all containers.
MAX_RESULT_BYTES = 1_000_000
# Signature of a PNG image, and the length and type of its first chunk.
PNG_START = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"
MAX_FIGURES = 20
MAX_FIGURE_BYTES = 32 * 1024 * 1024
MAX_OPEN_FILES = 256
# Timers and queued signals, in memory of the kernel. Without this limit all containers share the limit of the user.
MAX_SIGNALS = 1024
MAX_CPU_S = 3600
MAX_THREADS = 4


class InterpreterEnded(Exception):
    """End of the interpreter during a run. The message says why."""


@dataclass(frozen=True, slots=True)
class InterpreterAnswer:
    """Answer of the interpreter to a run."""

    value: str | None
    error: str | None
    figures: tuple[bytes, ...]
    is_truncated: bool


class InterpreterProcess:
    """Interpreter in a sandbox. Made by `start`; use by a single task at a time, except for `kill`."""

    def __init__(self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        # Process id of bubblewrap in the namespace of the runner.
        self.pid = process.pid
        self._main, self._nice = process.pid, NICE
        self._output: OutputReader | None = None
        self._reason: str | None = None

    @classmethod
    async def start(
        cls, bwrap: str, work: Path, memory_mib: int, options: RunnerOptions, cgroup: str = ""
    ) -> InterpreterProcess:
        """Start an interpreter. Raises SandboxUnavailable."""
        ours, theirs = socket.socketpair()
        with theirs:
            limits = json.dumps(_limits(memory_mib, options))
            try:
                process = sandboxed_process.start(
                    bwrap,
                    lambda seccomp: bubblewrap.interpreter_arguments(work, seccomp),
                    bubblewrap.interpreter_program(theirs.fileno(), limits),
                    bubblewrap.interpreter_environment(min(os.cpu_count() or 1, MAX_THREADS)),
                    [theirs.fileno()],
                )
            except OSError as error:
                ours.close()
                raise SandboxUnavailable(f"the interpreter did not start: {error}") from error
        reader, writer = await asyncio.open_connection(sock=ours)
        interpreter = cls(process, reader, writer)
        try:
            await interpreter._wait_ready(options)
            pids = process_table.container_pids(process.pid)
            cgroups.move(cgroup, [process.pid, *pids])
            # The last one is the interpreter.
            interpreter._main = pids[-1]
            await priority.end_first(interpreter._main)
        except BaseException:
            await interpreter.close()
            raise
        return interpreter

    async def run(self, code: str, on_output: OnOutput, timeout_s: float, *, is_startup: bool = False) -> InterpreterAnswer:
        """Run code; `is_startup` names the code of the operator. Raises InterpreterEnded; then only `close` may follow."""
        assert self._output is not None  # noqa: S101 - set by start
        output = self._output
        output.begin(on_output)
        process_table.resume(self.pid)
        try:
            async with asyncio.timeout(timeout_s):
                value, error, figures = await self._exchange(STARTUP if is_startup else CODE, code)
        except TimeoutError:
            raise InterpreterEnded(f"The code ran longer than {timeout_s:g} seconds") from None
        except (ValueError, RecursionError) as broken:
            raise InterpreterEnded("The code disturbed the interpreter") from broken
        except (OSError, EOFError) as broken:
            raise InterpreterEnded(self._reason or await self._exit_reason()) from broken
        finally:
            output.finish()
        if not await process_table.suspend(self.pid):
            raise InterpreterEnded("The code left processes that start processes without end")
        return InterpreterAnswer(value, error, figures, output.is_truncated)

    async def set_nice(self, nice: int) -> None:
        """Set the priority of the processes of the container."""
        if nice != self._nice:
            await priority.set_nice(self._main, nice)
            self._nice = nice

    async def end_reason(self) -> str | None:
        """Return why the interpreter has ended since the last run; None if it runs."""
        if self._reason is None and self._process.poll() is None:
            return None
        return self._reason or await self._exit_reason()

    def kill(self, reason: str) -> None:
        """End the interpreter. A run raises InterpreterEnded with `reason`."""
        self._reason = reason
        self._process.kill()

    async def close(self) -> None:
        """End all processes of the container."""
        await sandboxed_process.stop(self._process)
        if self._output is not None:
            self._output.close()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._writer.close()

    async def _wait_ready(self, options: RunnerOptions) -> None:
        try:
            async with asyncio.timeout(START_LIMIT_S):
                kind, _ = await self._receive()
        except (OSError, EOFError, ValueError) as error:
            raise SandboxUnavailable(f"the interpreter did not start: {await self._error_text()}") from error
        if kind != READY:
            raise SandboxUnavailable("the interpreter did not start")
        assert self._process.stdout is not None  # noqa: S101 - pipes are set
        assert self._process.stderr is not None  # noqa: S101
        pipes = {"stdout": os.dup(self._process.stdout.fileno()), "stderr": os.dup(self._process.stderr.fileno())}
        self._output = OutputReader({"stdout": pipes["stdout"], "stderr": pipes["stderr"]}, options.output_bytes)

    async def _exchange(self, request: bytes, code: str) -> tuple[str | None, str | None, tuple[bytes, ...]]:
        """Send code and return value, error and figures. Messages of the interpreter can contain anything."""
        # An answer without the token of this run was sent before by code that wrote to the connection.
        token = secrets.token_bytes(TOKEN_BYTES)
        data = token + code.encode("utf-8", "replace")
        self._writer.write(HEADER.pack(request, len(data)) + data)
        await self._writer.drain()
        figures: list[bytes] = []
        while True:
            kind, message = await self._receive()
            payload = message[TOKEN_BYTES:]
            if not message.startswith(token):
                continue
            if kind == FIGURE and len(figures) < MAX_FIGURES and sum(map(len, figures)) + len(payload) <= MAX_FIGURE_BYTES:
                figures += [payload] if payload.startswith(PNG_START) else []
            elif kind == RESULT:
                result = json.loads(payload)
                return _text(result, "value"), _text(result, "error"), tuple(figures)

    async def _receive(self) -> tuple[bytes, bytes]:
        kind, length = HEADER.unpack(await self._reader.readexactly(HEADER.size))
        if length > (MAX_RESULT_BYTES if kind == RESULT else MAX_MESSAGE_BYTES):
            raise ValueError("message too long")
        return kind, await self._reader.readexactly(length)

    async def _exit_reason(self) -> str:
        """Describe the end of the interpreter. A code above 128 is a signal in the sandbox, as bubblewrap reports signals."""
        code = await sandboxed_process.end(self._process)
        number = code - 128 if code > 128 else -code if code < 0 else 0
        if not number:
            return "The code ended the interpreter"
        try:
            return f"The interpreter ended with {signal.Signals(number).name}"
        except ValueError:
            return f"The interpreter ended with code {code}"

    async def _error_text(self) -> str:
        await sandboxed_process.stop(self._process)
        stream = self._process.stderr
        text = stream.read(4096).decode(errors="replace").strip() if stream else ""
        return text or "no message"


def _limits(memory_mib: int, options: RunnerOptions) -> dict[str, int]:
    return {
        "RLIMIT_AS": memory_mib * 1024 * 1024,
        "RLIMIT_CPU": MAX_CPU_S,
        "RLIMIT_NPROC": options.max_processes,
        "RLIMIT_FSIZE": options.disk_mib * 1024 * 1024,
        "RLIMIT_NOFILE": MAX_OPEN_FILES,
        "RLIMIT_SIGPENDING": MAX_SIGNALS,
        "RLIMIT_CORE": 0,
    }


def _text(result: Any, name: str) -> str | None:
    value = result.get(name) if isinstance(result, dict) else None
    # Lone surrogates, which UTF-8 has not, become question marks, as in printed text.
    return value.encode(errors="replace").decode() if isinstance(value, str) else None
