"""Streaming answer of the echo application that uses the DirectWriter of the connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from responses_app.wire.asgi_extensions import direct_writer
from tests.support.waiting import run_ready_tasks

PIECE_SIZE = 8192
# Pieces of the last stream: in all, and those that the DirectWriter has taken.
pushed = {"pieces": 0, "direct": 0}


async def push(scope: dict[str, Any], _receive: object, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    """Send `begin`, as many numbered pieces as the query string says, and `end`.

    Pieces go by the DirectWriter whenever it takes them, two in each turn of the loop, as those of a run.
    """
    writer = direct_writer(scope)
    assert writer is not None
    await send({"type": "http.response.start", "status": 200, "headers": []})
    assert not writer.can_write_now(), "the head has not been written"
    await send({"type": "http.response.body", "body": b"begin\n", "more_body": True})
    pushed["pieces"] = pushed["direct"] = 0
    for number in range(int(scope["query_string"])):
        parts = [b"%0*d" % (PIECE_SIZE, number), b"\n"]
        if writer.can_write_now():
            writer.write_now(parts)
            pushed["direct"] += 1
        else:
            await send({"type": "http.response.body", "body": b"".join(parts), "more_body": True})
        pushed["pieces"] += 1
        if number % 2:
            await run_ready_tasks()
    await send({"type": "http.response.body", "body": b"end\n"})
