"""Transport to an MCP server that is a program: a message is a line of its standard input or output."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import TextIO, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from responses_app.engines import orphan_guard
from responses_app.outbound_http.pinned_transport import MAX_BODY_BYTES
from responses_app.tools.mcp.errors import TOO_LONG, TOO_MANY_VALUES, McpError
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.transport.program_output import Pace, parse_line
from responses_app.tools.mcp.transport.value_count import ValueCount

# Times for the program to end behind the end of its input, and behind SIGTERM.
EXIT_LIMIT_S = 0.7
TERMINATE_LIMIT_S = 0.3
# A killed program ends at once, but on a busy machine it takes longer until the event loop sees the end. A session that closes does
# not wait for all of this time.
KILL_LIMIT_S = 5.0
CHUNK_BYTES = 65536

Received: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
Sent: TypeAlias = MemoryObjectReceiveStream[SessionMessage]
Streams: TypeAlias = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def stdio_transport(
    server: McpServer, on_failure: Callable[[McpError], None], on_end: Callable[[], None]
) -> AsyncGenerator[Streams, None]:
    """Start the program of `server` with a bare environment, and yield the streams of messages. Raises OSError.

    A line of more than MAX_BODY_BYTES bytes or MAX_VALUES values ends the connection: `on_failure` gets the reason. `on_end` is
    called when the program closes its output. The standard error is that of this process.
    """
    process = await asyncio.create_subprocess_exec(
        *server.command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=_standard_error(),
        env={**get_default_environment(), **orphan_guard.mark(), **server.environment},
        start_new_session=True,
        limit=MAX_BODY_BYTES,
    )
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, process, received, on_failure, on_end)
        tasks.start_soon(_send, process, sent, received)
        try:
            yield incoming, outgoing
        finally:
            incoming.close()
            outgoing.close()
            # Without the shield a cancellation would leave the program running.
            with anyio.CancelScope(shield=True):
                await _stop(process)
            tasks.cancel_scope.cancel()


async def _receive(
    process: Process, received: Received, on_failure: Callable[[McpError], None], on_end: Callable[[], None]
) -> None:
    """Pass the messages of the program on to `received`, then discard the rest of the output."""
    assert process.stdout is not None  # noqa: S101 - a pipe
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with received:
            pace = Pace()
            try:
                while True:
                    line = await process.stdout.readuntil(b"\n")
                    if ValueCount().is_exceeded_by(line):
                        on_failure(McpError(TOO_MANY_VALUES))
                        break
                    # Other text than messages is allowed, as programs print notices.
                    if (message := parse_line(line)) is not None:
                        await received.send(SessionMessage(message))
                    await pace.wait(len(line))
            except asyncio.LimitOverrunError:
                on_failure(McpError(TOO_LONG))
            except (asyncio.IncompleteReadError, ConnectionError):
                on_end()
                return
    # A program that cannot write cannot end.
    with suppress(ConnectionError):
        while await process.stdout.read(CHUNK_BYTES):
            pass


async def _send(process: Process, sent: Sent, received: Received) -> None:
    """Write the messages of `sent` to the program. A program that reads nothing more has no connection."""
    assert process.stdin is not None  # noqa: S101 - a pipe
    try:
        async with sent:
            async for message in sent:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(f"{text}\n".encode())
                await process.stdin.drain()
    except (ConnectionError, RuntimeError):
        await received.aclose()


async def _stop(process: Process) -> None:
    """Close the input of the program, and end the program and its children if it does not end."""
    assert process.stdin is not None  # noqa: S101 - a pipe
    with suppress(ConnectionError, RuntimeError):
        process.stdin.close()
    has_ended = False
    try:
        has_ended = await _has_ended(process, EXIT_LIMIT_S)
        if not has_ended:
            _signal_group(process, signal.SIGTERM)
            has_ended = await _has_ended(process, TERMINATE_LIMIT_S)
    finally:
        # Also if the wait was cancelled. The event loop must see the end, or the pipes stay open.
        if not has_ended:
            _signal_group(process, signal.SIGKILL)
            await _has_ended(process, KILL_LIMIT_S)
        # A child in another session may still have the output, which nothing reads any more.
        process._transport.close()  # type: ignore[attr-defined]


def _signal_group(process: Process, number: signal.Signals) -> None:
    """Send a signal to the program and its children."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def _has_ended(process: Process, limit_s: float) -> bool:
    """Return whether the program ends within `limit_s` seconds, and every child that has its output."""
    try:
        async with asyncio.timeout(limit_s):
            await process.wait()
    except TimeoutError:
        return False
    return True


@cache
def _standard_error() -> TextIO:
    """Return the standard error of this process, or the null device where there is none."""
    with suppress(AttributeError, OSError, ValueError):
        sys.__stderr__.fileno()  # type: ignore[union-attr]
        return sys.__stderr__  # type: ignore[return-value]
    return open(os.devnull, "w")
