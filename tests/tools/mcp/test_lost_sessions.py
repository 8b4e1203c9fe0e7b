"""Calls whose session or connection is lost: made again where no tool runs twice by that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from responses_app.tools.mcp.errors import SESSION_LOST, STOPPED, McpError
from tests.support.mcp.raw_server import Answer, reply, respond
from tests.support.mcp.raw_sessions import opened

DONE = reply(result={"content": [{"type": "text", "text": "done"}]})

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def hang_up(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.close()


def in_turn(*answers: Answer) -> Answer:
    """Answer each call with the next of `answers`."""
    left = list(answers)

    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        await left.pop(0)(writer, message)

    return answer


@pytest.mark.parametrize("is_repeatable", [True, False])
async def test_call_that_the_server_refused_with_its_session_is_made_in_a_new_session(is_repeatable: bool) -> None:
    async with opened(DONE) as (sessions, raw):
        raw.session = "first"
        await sessions.call("raw", "tool", {})
        raw.session = "second"
        assert (await sessions.call("raw", "tool", {}, is_repeatable=is_repeatable)).output == "done"
        assert (raw.methods.count("initialize"), raw.methods.count("tools/call")) == (2, 3)


async def test_session_that_is_lost_again_is_an_error() -> None:
    async def refuse(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        await respond(writer, 404, b"")

    async with opened(refuse) as (sessions, raw):
        raw.session = "first"
        with pytest.raises(McpError, match=SESSION_LOST):
            await sessions.call("raw", "tool", {})
        assert raw.methods.count("tools/call") == 2


async def test_repeatable_call_is_made_again_when_the_connection_is_lost() -> None:
    async with opened(in_turn(hang_up, DONE)) as (sessions, raw):
        assert (await sessions.call("raw", "tool", {}, is_repeatable=True)).output == "done"
        assert raw.methods.count("tools/call") == 2


@pytest.mark.parametrize(
    ("is_repeatable", "calls"), [pytest.param(True, 2, id="repeatable"), pytest.param(False, 1, id="not repeatable")]
)
async def test_lost_connection_is_an_error(is_repeatable: bool, calls: int) -> None:
    async with opened(in_turn(hang_up, hang_up)) as (sessions, raw):
        with pytest.raises(McpError, match=STOPPED):
            await sessions.call("raw", "tool", {}, is_repeatable=is_repeatable)
        assert raw.methods.count("tools/call") == calls
