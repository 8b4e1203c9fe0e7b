"""Requests of absurd size: read beside the loop, refused for their first fault, without an object for every other one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

import orjson
from pydantic import ValidationError

from responses_app.api import requests
from responses_app.api.base import ARRAY_LIMIT, Strict
from responses_app.api.body import LONG
from responses_app.api.requests import CreateResponse
from tests.api.case import HELLO, ApiCase, said

# Longer than this an array of the protocol is refused for its length, which is one finding.
FEW = 1024


def models(root: type[Strict] = Strict) -> Iterator[type[Strict]]:
    """All models of requests."""
    for model in root.__subclasses__():
        yield model
        yield from models(model)


def arrays(schema: Any) -> Iterator[dict[str, Any]]:
    """All arrays in a schema of pydantic's whose elements can be wrong."""
    for node in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list | tuple) else ():
        yield from arrays(node)
    if isinstance(schema, dict) and schema.get("type") == "list" and schema.get("items_schema", {"type": "any"})["type"] != "any":
        yield schema


class LargeTest(ApiCase):
    """With a scripted engine."""

    def test_every_array_is_refused_for_its_first_wrong_element(self) -> None:
        found = [(model, array) for model in models() for array in arrays(model.__pydantic_core_schema__)]
        self.assertGreater(len(found), 10)
        for model, array in found:
            with self.subTest(model=model.__name__):
                self.assertTrue(array.get("fail_fast") or array.get("max_length", FEW + 1) <= FEW)

    def test_a_thousand_faults_are_one_finding(self) -> None:
        for body in ({"include": [5] * 1000}, {f"key{n}": n for n in range(1000)}, {"text": {f"key{n}": n for n in range(1000)}}):
            with self.assertRaises(ValidationError) as raised:
                CreateResponse.model_validate({"model": "m", **body})
            self.assertEqual(raised.exception.error_count(), 1)

    async def test_arrays_are_only_so_long(self) -> None:
        many: list[Any] = [{}] * (ARRAY_LIMIT + 1)
        async with self.serving() as client:
            for body, param in (
                ({"input": many}, "input"),
                ({"input": [{"role": "user", "content": many}]}, "input[0].content"),
                ({"tools": many}, "tools"),
            ):
                with self.subTest(param=param):
                    self.refused(await self.post(client, **body), 400, "array_above_max_length", param)

    async def test_a_long_body_is_read_beside_the_loop(self) -> None:
        read, threads = requests.read, []

        def seen(*args: Any) -> Any:
            threads.append(threading.current_thread())
            return read(*args)

        async with self.serving(said(HELLO), said(HELLO)) as client:
            with mock.patch.object(requests, "read", seen):
                for size in (1, LONG):
                    body = orjson.dumps({"model": "m", "input": "Hi", "metadata": None, "instructions": "x" * size})
                    response = await client.post("/v1/responses", body, content_type="application/json")
                    self.assertEqual(response.status_code, 200)
        here = threading.current_thread()
        self.assertEqual([thread is here for thread in threads], [True, False])
