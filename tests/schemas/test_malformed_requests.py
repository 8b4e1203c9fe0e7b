"""Odd requests: wrong types at every depth, what JSON can carry at worst, and the forms in which clients send our items back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import orjson
from django.db import OperationalError
from openai.types.responses import Response as WireResponse

from responses_app.engine_interface import EngineUnavailable
from responses_app.errors import ApiError
from responses_app.models import Event, Item, Response
from responses_app.schemas import create_response
from responses_app.schemas.create_response import REFUSED, CreateResponse
from responses_app.validation import json_body
from tests.support.api.case import HELLO, TOOL, WEATHER, ApiCase, record_text

ODDEST: tuple[Any, ...] = (2**64 - 1, "\0", {"x": 1}, {"type": ["x"]})
WRONG = (*ODDEST, 5, -1, 1e300, True, "x", "", [], ["x"], [[]], [None], {}, [{"type": {}}])
HI = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "1"}
THOUGHT = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]}
CUSTOM_CALL = {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}
CUSTOM_OUTPUT = {"type": "custom_tool_call_output", "call_id": "c", "output": "1"}
SUMMARY = {"type": "compaction", "encrypted_content": "v1.x"}
ADDED = {"type": "additional_tools", "role": "developer"}
EXEC = {"type": "custom", "name": "exec"}
SPACE = {"type": "namespace", "name": "crm", "tools": [EXEC]}
ALLOWED: dict[str, Any] = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]}
MANAGED = {"type": "compaction", "compact_threshold": 1000}
FORM = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}
UPDATE = {"type": "configuration_update", "reasoning": {"effort": "low"}, "text": {"format": FORM}}
MORE = ("id", "status", "phase", "async", "caller", "namespace", "encrypted_content", "zzz")


def spoiled(whole: dict[str, Any], wrong: Any, more: tuple[str, ...] = ("zzz",)) -> Iterator[dict[str, Any]]:
    """`whole` with one value at a time replaced, or added."""
    for key in (*whole, *more):
        yield {**whole, key: wrong}


def bodies(wrongs: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """Requests with one wrong value at a time, down to the parts of items."""
    for wrong in wrongs:
        yield from ({"input": [one]} for one in spoiled(HI, wrong, ("type", *MORE)))
        yield from ({"input": [{**HI, "content": [one]}]} for one in spoiled(HI["content"][0], wrong))  # type: ignore[arg-type]
        yield from ({"input": [one, OUTPUT]} for one in spoiled(CALL, wrong, MORE))
        yield from ({"input": [CALL, one]} for one in spoiled(OUTPUT, wrong, MORE))
        yield from ({"input": [one]} for one in spoiled(THOUGHT, wrong, MORE))
        yield from ({"input": [{**THOUGHT, "content": [one]}]} for one in spoiled(THOUGHT["content"][0], wrong))  # type: ignore[arg-type]
        yield from ({"tools": [one]} for one in spoiled(TOOL, wrong, ("strict", "output_schema", "async", "zzz")))
        yield from ({"tools": [{**TOOL, "parameters": one}]} for one in spoiled(TOOL["parameters"], wrong))  # type: ignore[arg-type]
        yield from ({"input": [one, CUSTOM_OUTPUT]} for one in spoiled(CUSTOM_CALL, wrong, MORE))
        yield from ({"input": [CUSTOM_CALL, one]} for one in spoiled(CUSTOM_OUTPUT, wrong, MORE))
        yield from ({"input": [one]} for one in spoiled(SUMMARY, wrong, MORE))
        yield from ({"input": [one]} for one in spoiled({**ADDED, "tools": [SPACE]}, wrong, MORE))
        yield from ({"input": [one]} for one in spoiled(UPDATE, wrong, MORE))
        yield from ({"input": [{**UPDATE, "text": one}]} for one in spoiled(UPDATE["text"], wrong))  # type: ignore[arg-type]
        yield from ({"input": [{**UPDATE, "text": {"format": one}}]} for one in spoiled(FORM, wrong))
        yield from ({"tools": [one]} for one in spoiled(EXEC, wrong, ("format", "description", "zzz")))
        yield from ({"tools": [{**EXEC, "format": one}]} for one in spoiled({"type": "text"}, wrong))
        yield from ({"tools": [one]} for one in spoiled(SPACE, wrong))
        yield from ({"tools": [{**SPACE, "tools": [one]}]} for one in spoiled(EXEC, wrong))
        yield from ({"tool_choice": one} for one in spoiled(ALLOWED, wrong))
        yield from ({"tool_choice": {**ALLOWED, "tools": [one]}} for one in spoiled(ALLOWED["tools"][0], wrong))
        yield from ({"context_management": [one]} for one in spoiled(MANAGED, wrong))
        yield from ({"conversation": one} for one in spoiled({"id": "conv_1"}, wrong))
        yield {"conversation": f"conv{wrong}"}
        yield {"tools": [{**TOOL, "parameters": {"type": "object", "properties": {"a": wrong}}}]}
        yield from ({"tool_choice": one} for one in spoiled({"type": "function", "name": "get_weather"}, wrong))
        yield from ({"text": {"format": one}} for one in spoiled(FORM, wrong, ("strict", "description", "zzz")))
        yield from ({"text": one} for one in spoiled({}, wrong, ("format", "verbosity", "zzz")))
        yield from ({"reasoning": one} for one in spoiled({}, wrong, ("effort", "summary", "context", "mode", "zzz")))
        yield from ({"stream_options": one} for one in spoiled({}, wrong, ("include_obfuscation", "include_usage", "zzz")))
        yield from ({name: wrong} for name in (*CreateResponse.model_fields, *REFUSED))


class OddTest(ApiCase):
    """With a scripted engine and the real database."""

    async def test_a_body_with_an_encoding_is_named_as_such(self) -> None:
        async with self.serving() as client:
            body = orjson.dumps({"model": "m", "input": "Hi"})
            headers = {"Content-Encoding": "gzip"}
            response = await client.post("/v1/responses", body, content_type="application/json", headers=headers)
            self.refused(response, 400, None, None, "content encoding 'gzip'")

    async def test_a_byte_that_is_no_utf8_is_named_with_its_place(self) -> None:
        async with self.serving() as client:
            for path in ("responses", "chat/completions", "vector_stores"):
                body = b'{"model": "m",\n "input": "\xc3\xa9\xff"}'
                response = await client.post(f"/v1/{path}", body, content_type="application/json")
                text = "byte 0xff is not valid UTF-8: line 2 column 13 (char 27)."
                self.refused(response, 400, None, None, text)

    def taken(self, wrongs: tuple[Any, ...]) -> list[dict[str, Any]]:
        """The requests that are valid after all. The others have an error of the API that names a field, and nothing else."""
        taken = []
        for body in bodies(wrongs):
            whole = {"model": "m", "input": "Hi", "tools": [TOOL], **body}
            try:
                create_response.parse_request(json_body.parse(orjson.dumps(whole)), self.key)
            except ApiError as error:
                self.assertIn(error.status, (400, 404), body)
                self.assertTrue(error.param, body)
                orjson.dumps(error.body())
            else:
                taken.append(whole)
        return taken

    async def test_wrong_types_are_refused_by_name_and_what_is_taken_is_no_fault_of_ours(self) -> None:
        self.taken(WRONG)
        taken, odd = self.taken(ODDEST), []
        async with self.serving(*[record_text(HELLO, size=99) for _ in taken]) as client:
            for body in taken:
                response = await self.post(client, **{**body, "store": False, "stream": False})
                if response.status_code not in {200, 400, 404}:
                    odd.append((body, response.content))
            self.engine._tape.clear()
        self.assertEqual(odd, [])
        self.assertEqual(await Response.objects.acount() + await Item.objects.acount() + await Event.objects.acount(), 0)

    async def test_nesting_without_end_is_refused(self) -> None:
        places = (
            b'"tools":[{"type":"function","name":"f","strict":true,"parameters":%b}]',
            b'"text":{"format":{"type":"json_schema","name":"f","strict":true,"schema":%b}}',
            b'"input":[{"role":"assistant","content":[{"type":"output_text","text":"x","logprobs":[%b]}]}]',
            b'"client_metadata":%b',
        )
        async with self.serving() as client:
            for levels in (100, 260, 900, 5000):
                for place in places:
                    nest = b'{"$defs":' * levels + b"{}" + b"}" * levels
                    body = b'{"model":"m","input":"x",' + place % nest + b"}"
                    response = await client.post("/v1/responses", body, content_type="application/json")
                    self.refused(response, 400, None, None)

    async def test_items_come_back_in_every_form_of_the_openai_package(self) -> None:
        async with self.serving(*[record_text(WEATHER)] * 2, *[record_text(HELLO)] * 6) as client:
            first = orjson.loads((await self.post(client, tools=[TOOL])).content)
            output = WireResponse.model_validate(first).output
            answer = {"type": "function_call_output", "call_id": first["output"][1]["call_id"], "output": "sunny"}
            forms = {
                "body": first["output"],
                "dump": [item.model_dump() for item in output],
                "without unset": [item.model_dump(exclude_unset=True) for item in output],
                "by alias": [item.model_dump(mode="json", by_alias=True) for item in output],
                "parsed": [
                    {**item.model_dump(), "parsed_arguments": {"city": "Paris"}}
                    for item in output
                    if item.type == "function_call"
                ],
            }
            for name, form in forms.items():
                with self.subTest(form=name):
                    response = await self.post(client, tools=[TOOL], input=[HI, *form, {**answer, "id": None, "status": None}])
                    self.assertEqual(response.status_code, 200, response.content)
            second = orjson.loads(response.content)["output"]
            second[0]["content"][0]["parsed"] = {"a": 1}
            last = await self.post(client, input=[{"type": None, "phase": None, **HI}, *second, HI])
            self.assertEqual(last.status_code, 200, last.content)
            self.engine._tape.clear()

    async def test_null_is_absent_at_every_depth(self) -> None:
        tool = {**TOOL, **dict.fromkeys(("strict", "output_schema", "async", "defer_loading", "allowed_callers"))}
        async with self.serving(record_text(HELLO)) as client:
            response = await self.post(
                client,
                tools=[tool],
                text={"format": None, "verbosity": None},
                reasoning=dict.fromkeys(("effort", "summary", "context", "mode")),
                input=[{**HI, **dict.fromkeys(MORE)}],
            )
            self.assertEqual(response.status_code, 200, response.content)

    async def test_parameters_without_effect_are_refused(self) -> None:
        cases: tuple[tuple[dict[str, Any], str, str], ...] = (
            ({"text": {"format": {"type": "json_object", "schema": {}}}}, "unknown_parameter", "text.format.schema"),
            ({"text": {"format": {"type": "text", "strict": True}}}, "unknown_parameter", "text.format.strict"),
            ({"input": [{**THOUGHT, "encrypted_content": "x"}]}, "invalid_encrypted_content", "input[0].encrypted_content"),
            ({"input": [{**THOUGHT, "content": [{"x": 1}]}]}, "missing_required_parameter", "input[0].content[0].type"),
            ({"input": [{**CALL, "name": "a b"}, OUTPUT]}, "invalid_value", "input[0].name"),
            ({"tools": [{**TOOL, "defer_loading": True}]}, "invalid_value", "tools[0].defer_loading"),
            ({"tools": [{**TOOL, "parameters": {"type": "array"}}]}, "invalid_function_parameters", "tools[0].parameters"),
            (
                {"tools": [{**TOOL, "parameters": {"type": "object", "properties": []}}]},
                "invalid_function_parameters",
                "tools[0].parameters",
            ),
        )
        async with self.serving() as client:
            for body, code, param in cases:
                self.refused(await self.post(client, **body), 400, code, param)

    async def test_an_item_is_told_once(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            first = orjson.loads((await self.post(client)).content)
            message = first["output"][0]
            for items in ([message, HI, message], [message, {"type": "item_reference", "id": message["id"]}]):
                self.refused(await self.post(client, input=items), 400, None, "input", "Duplicate item found with id msg_")
            again = await self.post(client, input=[message, HI], previous_response_id=first["id"])
            self.refused(again, 400, None, "input", "Duplicate item found with id msg_")
            self.assertEqual(await Response.objects.acount(), 1)

    async def test_a_top_p_of_zero_leaves_the_engine_the_likeliest_token(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            body = orjson.loads((await self.post(client, top_p=0)).content)
            self.assertEqual(body["top_p"], 0)
            self.assertGreater(self.engine.requests[0].sampling.top_p, 0)

    async def test_long_values_are_not_repeated_in_full(self) -> None:
        async with self.serving() as client:
            response = await self.post(client, truncation="x" * 100_000)
            self.refused(response, 400, "invalid_value", "truncation")
            self.assertLess(len(response.content), 1000)

    async def test_a_lost_database_is_503_and_may_be_tried_again(self) -> None:
        async with self.serving() as client:
            with mock.patch("responses_app.api.views.responses._find", side_effect=OperationalError("gone")):
                response = await client.get("/v1/responses/resp_x")
            self.refused(response, 503, "server_error", None)
            self.assertEqual(response["Retry-After"], "2")

    async def test_an_engine_that_does_not_start_is_503_and_may_be_tried_again(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            with mock.patch.object(self.engine, "start", side_effect=EngineUnavailable("no memory")):
                response = await self.post(client)
            self.refused(response, 503, "server_error", None, "did not start")
            self.assertEqual(response["Retry-After"], "2")
            self.assertEqual((await self.post(client)).status_code, 200)

    async def test_every_address_below_the_api_answers_in_its_shapes(self) -> None:
        async with self.serving() as client:
            for path in (
                "/v1",
                "/v1/",
                "/v1/a%0Ab",
                "/v1/responses//",
                "/v1/models/a%0Ab",
                "/v1/%ff",
            ):
                with self.subTest(path=path):
                    response = await client.get(path)
                    self.assertEqual((response.status_code, response["Content-Type"]), (404, "application/json"), path)
                    self.assertEqual(response["openai-version"], "2020-10-01")
                    self.assertTrue(response["openai-processing-ms"].isdecimal())
            for path in (
                "/v1/responses/resp_%ff",
                "/v1/responses/resp_x?stream=true",
                "/v1/responses/%ED%A0%80",
                "/v1/responses/a%0Ab",
            ):
                self.refused(await client.get(path), 404, None, None)
            for method, path in (
                ("put", "/v1/responses"),
                ("head", "/v1/responses/resp_x"),
                ("get", "/v1/responses/resp_x/cancel"),
                ("post", "/health"),
                ("patch", "/v1/models"),
            ):
                with self.subTest(method=method, path=path):
                    response = await getattr(client, method)(path)
                    self.assertEqual(response.status_code, 405)
                    self.assertTrue(response["Allow"])
                    self.assertTrue(response["x-request-id"].startswith("req_"))
            for method in ("get", "head"):
                with self.subTest(method=method):
                    response = await getattr(client, method)("/health")
                    self.assertTrue(response["x-request-id"].startswith("req_"))

    async def test_odd_queries_are_refused_or_harmless(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            uid = orjson.loads((await self.post(client)).content)["id"]
            for query in (
                "limit=1e3",
                "limit=" + "9" * 5000,
                "limit=%00",
                "order=up",
                "order=ASC",
                "include[]=nope",
                "include=%00",
            ):
                with self.subTest(query=query):
                    response = await client.get(f"/v1/responses/{uid}/input_items?{query}")
                    self.assertEqual(response.status_code, 400, response.content)
            for query in ("after=%00", "after=" + "x" * 5000, "after=%ED%A0%80", "after='"):
                self.refused(await client.get(f"/v1/responses/{uid}/input_items?{query}"), 404, None, "after")
            for query in ("stream=maybe", "stream=true&starting_after=1_0", "stream=true&starting_after=%D9%A1"):
                with self.subTest(query=query):
                    response = await client.get(f"/v1/responses/{uid}?{query}")
                    self.assertEqual(response.status_code, 400, query)

    async def test_error_quotes_little_of_the_request(self) -> None:
        long = "x" * 1_000_000
        async with self.serving() as client:
            for body in (
                {"previous_response_id": long},
                {long: 1},
                {"metadata": {long: 1}},
                {"model": long},
                {"include": [long]},
            ):
                with self.subTest(first=next(iter(body))[:20]):
                    response = await self.post(client, **body)
                    self.assertEqual(response.status_code, 400)
                    self.assertLess(len(response.content), 8000)

    async def test_integers_of_any_size_are_taken_or_named(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            most = 2**64 - 1
            self.assertEqual((await self.made(client, max_tool_calls=most))["max_tool_calls"], most)
            for name in ("max_output_tokens", "max_tool_calls", "top_logprobs"):
                body = f'{{"model":"m","input":"x","{name}":{2**64}}}'
                response = await client.post("/v1/responses", body, content_type="application/json")
                self.refused(response, 400, "invalid_type", name, "expected an integer, but got a number of more than 64 bits")

    async def test_content_types_make_no_difference(self) -> None:
        body = orjson.dumps({"model": "m", "input": "x"})
        kinds = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x")
        async with self.serving(*[record_text(HELLO)] * len(kinds)) as client:
            for kind in kinds:
                with self.subTest(kind=kind):
                    response = await client.post("/v1/responses", body, content_type=kind)
                    self.assertEqual(response.status_code, 200, (kind, response.content))
