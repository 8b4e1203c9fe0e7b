"""Requests of absurd size: read beside the loop, refused for their first fault, without an object for every other one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import orjson
import pytest
from pydantic import ValidationError

from responses_app.schemas import create_response
from responses_app.schemas.create_response import CreateResponse
from responses_app.validation.base import ARRAY_LIMIT, TOOLS_LIMIT, StrictModel
from responses_app.wire.request_body import MAX_LOOP_BYTES
from tests.support.api.case import ENCODING, HELLO, ApiCase, record_text

# Longer than this an array of the protocol is refused for its length, which is one finding.
FEW = 1024


def models(root: type[StrictModel] = StrictModel) -> Iterator[type[StrictModel]]:
    """All models of requests."""
    for model in root.__subclasses__():
        yield model
        yield from models(model)


def arrays(schema: Any) -> Iterator[dict[str, Any]]:
    """All arrays in a schema of pydantic's whose elements can be wrong."""
    for node in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list | tuple) else ():
        yield from arrays(node)
    if (
        isinstance(schema, dict)
        and schema.get("type") == "list"
        and schema.get("items_schema", {"type": "any"})["type"] != "any"
    ):
        yield schema


class LargeTest(ApiCase):
    """With a scripted engine."""

    def test_every_array_is_refused_for_its_first_wrong_element(self) -> None:
        arrays_of_models = [(model, array) for model in models() for array in arrays(model.__pydantic_core_schema__)]
        self.assertGreater(len(arrays_of_models), 10)
        for model, array in arrays_of_models:
            with self.subTest(model=model.__name__):
                self.assertTrue(array.get("fail_fast") or array.get("max_length", FEW + 1) <= FEW)

    def test_a_thousand_faults_are_one_finding(self) -> None:
        for body in (
            {"include": [5] * 1000},
            {f"key{n}": n for n in range(1000)},
            {"text": {f"key{n}": n for n in range(1000)}},
        ):
            with self.subTest(first=next(iter(body))):
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

    async def test_the_number_of_tools_has_a_limit_wherever_they_stand(self) -> None:
        tool = {"type": "function", "name": "f"}
        many = [{**tool, "name": f"f{n}"} for n in range(TOOLS_LIMIT // 2)]
        spaces = [{"type": "namespace", "name": name, "description": "x", "tools": many} for name in ("a", "b")]
        items = [{"type": "additional_tools", "role": "developer", "tools": spaces[:1]}] * 2
        async with self.serving(record_text(HELLO)) as client:
            for body, param in (
                ({"tools": [tool] * (TOOLS_LIMIT + 1)}, "tools"),
                ({"tools": spaces}, "tools"),
                ({"input": [*items, {"role": "user", "content": "x"}]}, "input"),
            ):
                with self.subTest(param=param):
                    response = await self.post(client, **{"input": "x", **body})
                    self.refused(response, 400, "array_above_max_length", param, "at most 4096 tools")
            self.assertEqual((await self.post(client, tools=many)).status_code, 200)

    async def test_a_text_that_cannot_fit_is_refused_by_its_bytes(self) -> None:
        long = {"words": "some words " * 800_000, "accents": "é" * 8_000_000}
        async with self.serving() as client:
            for name, text in long.items():
                for path in ("", "/input_tokens", "/compact"):
                    with self.subTest(text=name, path=path):
                        began = time.process_time()
                        body = orjson.dumps({"model": "m", "input": text})
                        response = await client.post(f"/v1/responses{path}", body, content_type="application/json")
                        self.refused(response, 400, "context_length_exceeded", "input", "at least")
                        self.assertLess(time.process_time() - began, 10)
            response = await self.post(client, input=long["words"], truncation="auto")
            self.refused(response, 400, "context_length_exceeded", "input", "at least")

    @pytest.mark.slow
    async def test_tens_of_thousands_of_messages_are_refused_or_truncated(self) -> None:
        messages = [{"role": "user", "content": f"Message {n}"} for n in range(30_000)]
        async with self.serving(record_text(HELLO)) as client:
            self.refused(await self.post(client, input=messages), 400, "context_length_exceeded", "input", "at least")
            response = await self.post(client, input=messages, truncation="auto", store=False)
            self.assertEqual(response.status_code, 200)
            self.assertIn("Message 29999", ENCODING.decode(list(self.engine.requests[-1].prompt)))

    async def test_names_in_calls_have_a_limit(self) -> None:
        call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "namespace": "n" * 200_000}
        async with self.serving() as client:
            response = await self.post(client, input=[call])
            self.refused(response, 400, "string_above_max_length", "input[0].namespace")

    async def test_a_long_body_is_read_beside_the_loop(self) -> None:
        read, threads = create_response.parse_request, []

        def seen(*args: Any, **named: Any) -> Any:
            threads.append(threading.current_thread())
            return read(*args, **named)

        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            with mock.patch.object(create_response, "parse_request", seen):
                for size in (1, MAX_LOOP_BYTES):
                    with self.subTest(size=size):
                        body = orjson.dumps({"model": "m", "input": "Hi", "metadata": None, "instructions": "x" * size})
                        response = await client.post("/v1/responses", body, content_type="application/json")
                        self.assertEqual(response.status_code, 200)
        here = threading.current_thread()
        self.assertEqual([thread is here for thread in threads], [True, False])
