"""Every stream that the real engines make keeps the rules, and stream, POST, GET and replay are the same bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from responses_app.protocol.conformance import StreamValidator
from responses_app.protocol.reducer import fold
from tests.support import plain_http
from tests.support.contract_server import Address
from tests.support.request_bodies import BODIES, EVERY_SHAPE, Body

pytestmark = pytest.mark.engine
MAX_CONCURRENT = 16
# Half of the groups are full: the concurrency of a list of any length is mostly low. A failing group shrinks to the first kind.
GROUPS = st.lists(BODIES, min_size=1, max_size=MAX_CONCURRENT) | st.lists(
    BODIES, min_size=MAX_CONCURRENT, max_size=MAX_CONCURRENT
)
HEARTBEAT = b": keep-alive\n\n"
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@settings(max_examples=3, derandomize=False)
@given(bodies=GROUPS)
@example(bodies=EVERY_SHAPE)
def test_concurrent_requests_follow_every_rule(server: Address, bodies: list[Body]) -> None:
    asyncio.run(_send_all(server, "demo-chat", bodies))


def test_concurrent_requests_to_gpt_oss_follow_every_rule(server: Address) -> None:
    # With its large vocabulary this model takes five times the CPU of the other one: it has each shape once.
    asyncio.run(_send_all(server, "demo-harmony", EVERY_SHAPE))


async def _send_all(server: Address, model: str, bodies: list[Body]) -> None:
    headers = {"Authorization": f"Bearer {server.key}"}
    supported = [{"model": model, **body} for body in bodies if _has_effort(model, body)]
    async with plain_http.async_client(base_url=server.base, headers=headers, timeout=300) as client:
        await asyncio.gather(*((_streamed if body["stream"] else _posted)(client, body) for body in supported))


def _has_effort(model: str, body: Body) -> bool:
    """Return whether a model has the reasoning effort of a body. Another test has the refusal of Harmony."""
    return model != "demo-harmony" or body.get("reasoning", {}).get("effort") != "none"


async def _streamed(client: httpx2.AsyncClient, body: Body) -> None:
    raw = await _read(client, "POST", "/responses", content=orjson.dumps(body))
    events = _judge(raw, body)
    final = events[-1]["response"]
    got = await client.get(f"/responses/{final['id']}")
    assert got.content == orjson.dumps(final), body
    assert await _read(client, "GET", f"/responses/{final['id']}?stream=true") == raw, body
    middle = len(events) // 2
    replayed = await _read(client, "GET", f"/responses/{final['id']}?stream=true&starting_after={middle}")
    assert raw.endswith(replayed), body
    assert replayed.count(b"\nevent: ") == len(events) - middle - 2, body


async def _posted(client: httpx2.AsyncClient, body: Body) -> None:
    answer = await client.post("/responses", content=orjson.dumps(body))
    if answer.status_code == 500:
        # A model without a constraint can break off inside its arguments; the response says so, and is kept as failed.
        assert "not valid JSON" in answer.json()["error"]["message"], (body, answer.text)
        return
    assert answer.status_code == 200, (body, answer.text)
    uid = orjson.loads(answer.content)["id"]
    assert (await client.get(f"/responses/{uid}")).content == answer.content, body
    _judge(await _read(client, "GET", f"/responses/{uid}?stream=true"), body)


async def _read(client: httpx2.AsyncClient, method: str, path: str, **fields: Any) -> bytes:
    async with client.stream(method, path, **fields) as answer:
        raw = b"".join([part async for part in answer.aiter_raw()])
        assert answer.status_code == 200, (fields, raw)
    # Comments come when an engine is slow, and are no part of the log.
    return raw.replace(HEARTBEAT, b"")


def _judge(raw: bytes, body: Body) -> list[dict[str, Any]]:
    """The events of a whole stream: by our own rules, by our fold, and by the types of the openai package."""
    blocks = [block for block in raw.decode().split("\n\n") if not block.startswith(":")]
    assert blocks[-2:] == ["data: [DONE]", ""], body
    events = [orjson.loads(block.split("\ndata: ")[1]) for block in blocks[:-2]]
    check = StreamValidator()
    broken = [violation for event in events for violation in check.feed(event)] + check.close()
    assert not broken, (body, broken)
    assert fold(events) == events[-1]["response"], body
    for event in events:
        EVENT.validate_python(event)
    Response.model_validate_json(orjson.dumps(events[-1]["response"]), strict=True)
    return events
