"""Shared parts of the API tests: a key, a hub whose engine replays a tape in harmony, and readers for what comes back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.db import connection
from django.test import AsyncClient, TestCase
from django.test.utils import CaptureQueriesContext

from responses_app.access import api_keys
from responses_app.dialects.base import Dialect
from responses_app.engine_interface import Logprob
from responses_app.engines.replay.engine import Recording, ReplayEngine, Tokens
from responses_app.models import ApiKey, Worker
from responses_app.protocol.conformance import StreamValidator
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from tests.support.dialects.parser_driver import harmony

# Made once: the library reads its vocabulary again for each, which takes half a second.
HARMONY = harmony()
ENCODING = HARMONY.encoding
HELLO = "<|channel|>final<|message|>Hello there!<|return|>"
THOUGHT = (
    "<|channel|>analysis<|message|>They greet me.<|end|><|start|>assistant<|channel|>final<|message|>Hello there!<|return|>"
)
WEATHER = (
    "<|channel|>analysis<|message|>I need the tool.<|end|>"
    '<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Paris"}<|call|>'
)
TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def tokens(text: str) -> list[int]:
    """Harmony token ids; special tokens are written unchanged."""
    ids: list[int] = ENCODING.encode(text, allowed_special="all")
    return ids


def record_text(text: str, size: int = 1, **fields: Any) -> Recording:
    """Return a recording of `text` with `size` tokens in each chunk."""
    ids = tokens(text)
    return Recording([Tokens(ids[at : at + size]) for at in range(0, len(ids), size)], **fields)


def record_logprobs() -> Recording:
    """Return a recording of HELLO, each token with a log-probability and two alternatives."""
    ids = tokens(HELLO)
    return Recording([Tokens([one], logprobs=[Logprob(one, -0.5, ((one, -0.5), (13, -1.5)))]) for one in ids])


def sse(body: bytes) -> list[dict[str, Any]]:
    """Parse the events of a whole stream; check the framing: a data line each, `[DONE]` last."""
    blocks = body.decode().split("\n\n")
    assert blocks[-2:] == ["data: [DONE]", ""], blocks[-2:]
    events = []
    for block in blocks[:-2]:
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        event = orjson.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def first_event(chunk: bytes) -> dict[str, Any]:
    """Return the first event of a chunk of a stream."""
    event: dict[str, Any] = orjson.loads(chunk.split(b"\n", 2)[1].removeprefix(b"data: "))
    return event


def bare(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events without padding, as in the log."""
    return [{key: value for key, value in event.items() if key != "obfuscation"} for event in events]


# What a request asks for; heartbeats, and the log, which is written in as many pieces as the engine's pace makes, are something else.
ASKED = re.compile(r'(?!COPY|SELECT "responses_app_lease)\w+ .*responses_app_(?!worker)')


class KeyedClient(AsyncClient):
    """Test client that sends its key with every request; a header `Authorization` of the request replaces the key."""

    def __init__(self, secret: str) -> None:
        super().__init__()
        self.secret = secret

    def generic(self, *args: Any, **extra: Any) -> Any:
        """Any request."""
        extra["headers"] = {"Authorization": f"Bearer {self.secret}", **(extra.get("headers") or {})}
        return super().generic(*args, **extra)


class ApiCase(TestCase):
    """A project with a key, and a model called `m`."""

    dialect: Dialect = HARMONY
    key: ApiKey
    secret: str

    @classmethod
    def setUpTestData(cls) -> None:
        cls.key, cls.secret = ApiKey.make("test")

    def setUp(self) -> None:
        self.engine = ReplayEngine()

    def new_hub(self) -> RunManager:
        """A manager of the model `m`, with the server tools that are configured."""
        return RunManager({"m": ServedModel("m", self.engine, "", {}, dialect=self.dialect)})

    @asynccontextmanager
    async def serving(self, *lines: Recording) -> AsyncIterator[KeyedClient]:
        """Yield a client of a server whose engine has these lines on a tape; all lines must be used."""
        self.engine.add(*lines)
        self.hub = self.new_hub()
        manager.set_current(self.hub)
        try:
            yield KeyedClient(self.secret)
            await self.engine.close(strict=True)
        finally:
            await self.hub.close()
            manager.set_current(None)

    async def limit(self, **limits: Any) -> None:
        """Set limits of the key."""
        await ApiKey.objects.filter(pk=self.key.pk).aupdate(**limits)
        api_keys.clear_cache()

    async def crash(self) -> None:
        """End the first process without a release of the leases."""
        assert self.hub.services is not None
        await self.hub.services.lease_keeper.stop()
        for run in self.hub.runs.values():
            run.hand_over()
        await Worker.objects.filter(pk=self.hub.services.lease_keeper.worker).adelete()

    @asynccontextmanager
    async def queries(self) -> AsyncIterator[list[str]]:
        """Capture the SQL statements of the block, of the thread that has the connection."""
        captured_queries: list[str] = []
        captured = CaptureQueriesContext(connection)
        await sync_to_async(captured.__enter__)()
        try:
            yield captured_queries
        finally:
            await sync_to_async(captured.__exit__)(None, None, None)
            queries: list[dict[str, str]] = await sync_to_async(lambda: list(captured))()
            captured_queries += [query["sql"] for query in queries if ASKED.match(query["sql"])]

    async def post(self, client: AsyncClient, **body: Any) -> Any:
        """POST /v1/responses."""
        return await client.post(
            "/v1/responses", orjson.dumps({"model": "m", "input": "Hi", **body}), content_type="application/json"
        )

    async def made(self, client: AsyncClient, **body: Any) -> dict[str, Any]:
        """A response that was made."""
        response = await self.post(client, **body)
        self.assertEqual(response.status_code, 200, response.content)
        made: dict[str, Any] = orjson.loads(response.content)
        return made

    async def stream(self, client: AsyncClient, **body: Any) -> list[dict[str, Any]]:
        """POST with `stream`, read to the end and judged by the checker."""
        response = await self.post(client, stream=True, **body)
        self.assertEqual(response.status_code, 200, getattr(response, "content", b""))
        return self.judge(await self.read(response))

    async def read(self, response: Any) -> list[dict[str, Any]]:
        """All events of a streaming response."""
        parts = [part async for part in response.streaming_content]
        return sse(b"".join(parts))

    def judge(self, events: list[dict[str, Any]], after: int = -1) -> list[dict[str, Any]]:
        """`events`, which break no rule of the grammar."""
        if after < 0:
            check = StreamValidator()
            broken = [violation for event in events for violation in check.feed(event)] + check.close()
            self.assertEqual(broken, [])
        return events

    def refused(self, response: Any, status: int, code: str | None, param: str | None, text: str = "") -> None:
        """The response is an error object of OpenAI's shape, with these values."""
        self.assertEqual(response.status_code, status, response.content)
        error = orjson.loads(response.content)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual((error["code"], error["param"]), (code, param), error)
        self.assertIn(text, error["message"])
        self.assertTrue(response["x-request-id"].startswith("req_"))
