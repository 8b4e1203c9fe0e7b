"""Connections to Postgres outside of the pool and without a pooler, for notifications and locks."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from responses_app.store.db import listen_parameters

CONNECT_TIMEOUT_S = 5
# Seconds that a statement may take.
ANSWER_LIMIT_S = 10.0


@contextmanager
def answer_limit(link: psycopg.AsyncConnection[Any]) -> Iterator[None]:
    """End the connection if the statements of the block take ANSWER_LIMIT_S seconds: then they raise psycopg.OperationalError."""
    timer = asyncio.get_running_loop().call_later(ANSWER_LIMIT_S, _end, link)
    try:
        yield
    finally:
        timer.cancel()


def _end(link: psycopg.AsyncConnection[Any]) -> None:
    # Not by cancelling: psycopg then waits for the end of the statement.
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(link.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


async def close(link: psycopg.AsyncConnection[Any] | None) -> None:
    """Close the connection. A broken connection raises nothing."""
    if link is not None:
        with suppress(psycopg.Error):
            await link.close()


async def connect() -> psycopg.AsyncConnection[Any]:
    """Connect outside of the pool, and without a pooler if RESPONSES_LISTEN_DATABASE_URL names a direct address."""
    # The address may set a time limit of its own.
    parameters = {"connect_timeout": CONNECT_TIMEOUT_S, **listen_parameters()}
    connecting = asyncio.ensure_future(psycopg.AsyncConnection.connect(**parameters, autocommit=True))
    try:
        return await asyncio.shield(connecting)
    except asyncio.CancelledError:
        # An unfinished connection cannot be closed, so wait for the connection and close it then.
        with suppress(psycopg.Error):
            await (await connecting).close()
        raise
