"""Requests that are refused before anything runs: status, code, param and sentence, and no row left behind (checklist A and B)."""

from __future__ import annotations

from typing import Any

import orjson

from responses_app.models import Event, Item, Response
from tests.support.api.case import HELLO, TOOL, ApiCase, record_text


def schema(**fields: Any) -> dict[str, Any]:
    """A strict `text` option with this schema."""
    return {"format": {"type": "json_schema", "name": "x", "strict": True, "schema": fields}}


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
DEEP: dict[str, Any] = OBJECT
for _ in range(10):
    DEEP = {"type": "object", "properties": {"a": DEEP}, "required": ["a"], "additionalProperties": False}
WIDE = {f"p{n}": {"type": "string"} for n in range(5001)}
TEXTS: dict[str, Any] = {
    "values in its enums": {"enum": [str(n) for n in range(1001)]},
    "250 values": {"enum": ["x" * 60 + str(n) for n in range(251)]},
    "120000 characters": {"type": "string", "const": "x" * 120_001},
}

RAN = {"stdout": "", "stderr": ""}

# body, code, param, part of the sentence
BAD: list[tuple[dict[str, Any], str | None, str | None, str]] = [
    ({"model": None}, "missing_required_parameter", "model", "Missing required parameter: 'model'."),
    ({"model": "x"}, "model_not_found", "model", "The requested model 'x' does not exist."),
    ({"model": [None, None]}, "invalid_type", "model", "expected a string, but got an array"),
    ({"input": 5}, "invalid_type", "input", ""),
    ({"input": None}, "missing_required_parameter", "input", ""),
    ({"input": [5]}, "invalid_type", "input[0]", ""),
    ({"input": [{}]}, "missing_required_parameter", "input[0].type", ""),
    ({"input": [{"type": "nope"}]}, "invalid_value", "input[0].type", "'message'"),
    ({"input": [{"role": "user"}]}, "missing_required_parameter", "input[0].content", ""),
    ({"input": [{"role": "king", "content": "x"}]}, "invalid_value", "input[0].role", "'user'"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
        "missing_required_parameter",
        "input[0].content[0].text",
        "",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]},
        "invalid_value",
        "input[0].content[0].type",
        "",
    ),
    (
        {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]},
        "invalid_value",
        "input[0].content[0].type",
        "Invalid value: 'input_text'. Supported values are: 'output_text', 'refusal'",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
        "invalid_image_url",
        "input[0].content[0].image_url",
        "",
    ),
    (
        {"input": [{"type": "message", "id": "item_x", "role": "user", "content": "x"}]},
        "invalid_value",
        "input[0].id",
        "begins with 'msg'",
    ),
    (
        {"input": [{"type": "local_shell_call_output", "id": 1, "output": "x"}]},
        "invalid_type",
        "input[0].id",
        "a string",
    ),
    (
        {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "", "caller": {"type": "program"}}]},
        "missing_required_parameter",
        "input[0].caller.caller_id",
        "",
    ),
    (
        {"input": [{"type": "function_call", "call_id": "c", "name": "f"}]},
        "missing_required_parameter",
        "input[0].arguments",
        "",
    ),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": 5}]}, "invalid_type", "input[0].output", ""),
    (
        {"temperature": -1},
        "decimal_below_min_value",
        "temperature",
        "Invalid 'temperature': decimal below minimum value. Expected a value >= 0, but got -1 instead.",
    ),
    ({"temperature": 2.1}, "decimal_above_max_value", "temperature", ""),
    ({"temperature": "hot"}, "invalid_type", "temperature", "expected a number, but got a string"),
    ({"top_p": 1.5}, "decimal_above_max_value", "top_p", ""),
    (
        {"seed": 2**63},
        "integer_above_max_value",
        "seed",
        "Expected a value <= 9223372036854775807, but got 9223372036854775808",
    ),
    ({"max_output_tokens": 15}, "integer_below_min_value", "max_output_tokens", ""),
    ({"max_output_tokens": 20.5}, "invalid_type", "max_output_tokens", "expected an integer"),
    ({"max_output_tokens": True}, "invalid_type", "max_output_tokens", "got a boolean"),
    ({"max_tool_calls": 0}, "integer_below_min_value", "max_tool_calls", ""),
    ({"metadata": {str(n): "x" for n in range(17)}}, "object_above_max_properties", "metadata", ""),
    ({"metadata": {"k" * 65: "x"}}, "string_above_max_length", "metadata", ""),
    ({"metadata": {"k": "x" * 513}}, "string_above_max_length", "metadata.k", ""),
    ({"metadata": {"k": 1}}, "invalid_type", "metadata.k", ""),
    ({"metadata": {"a.b": 1}}, "invalid_type", 'metadata["a.b"]', ""),
    ({"metadata": {"a[0]": "x" * 513}}, "string_above_max_length", 'metadata["a[0]"]', ""),
    ({"metadata": {"": 1}}, "invalid_type", 'metadata[""]', ""),
    ({"text.format": {}}, "unknown_parameter", '["text.format"]', ""),
    (
        {"prompt_cache_options": {"prewarm": True}},
        "unsupported_parameter",
        "prompt_cache_options.prewarm",
        "every prompt is cached by being used",
    ),
    (
        {"background": True, "stream": True, "background_options": {"completion_window": "2h"}},
        "invalid_value",
        "background_options.completion_window",
        "'background' to be true",
    ),
    ({"background_options": {"completion_window": "8h"}}, "invalid_value", "background_options.completion_window", ""),
    ({"prompt_cache_options": {"ttl": "1s"}}, "invalid_value", "prompt_cache_options.ttl", "'12h'"),
    ({"prompt_cache_key": "x" * 65}, "string_above_max_length", "prompt_cache_key", ""),
    ({"safety_identifier": "x" * 129}, "string_above_max_length", "safety_identifier", ""),
    ({"service_tier": "gold"}, "invalid_value", "service_tier", ""),
    ({"include": ["nope"]}, "invalid_value", "include[0]", "'file_search_call.results'"),
    ({"truncation": "middle"}, "invalid_value", "truncation", ""),
    ({"stream": "yes"}, "invalid_type", "stream", ""),
    ({"strem": True}, "unknown_parameter", "strem", "Did you mean 'stream'?"),
    ({"reasoning_effort": "low"}, "unknown_parameter", "reasoning_effort", "Did you mean 'reasoning.effort'?"),
    ({"messages": []}, "unknown_parameter", "messages", "Did you mean 'input'?"),
    ({"stream_options": {"x": 1}}, "unknown_parameter", "stream_options.x", ""),
    ({"background": "yes"}, "invalid_type", "background", ""),
    ({"conversation": "x"}, "invalid_value", "conversation", "begins with 'conv'"),
    ({"reasoning": {"effort": "huge"}}, "invalid_value", "reasoning.effort", "'low'"),
    ({"tools": [{**TOOL, "name": "a b"}]}, "invalid_value", "tools[0].name", ""),
    ({"tools": [{**TOOL, "name": "a" * 65}]}, "string_above_max_length", "tools[0].name", ""),
    ({"tools": [TOOL, TOOL]}, "invalid_value", "tools[1].name", "used twice"),
    ({"tools": [{"type": "apply_patch"}] * 2}, "invalid_value", "tools[1].type", "used twice"),
    ({"tools": [{"type": "web_search"}]}, "invalid_value", "tools[0].type", "'web_search'"),
    ({"tools": [{"type": "function"}]}, "missing_required_parameter", "tools[0].name", ""),
    (
        {"tools": [{**TOOL, "strict": True, "parameters": {"type": "object", "properties": {"a": {}}}}]},
        "invalid_function_parameters",
        "tools[0].parameters",
        "",
    ),
    ({"tool_choice": "required"}, "invalid_value", "tool_choice", "must be specified with 'tools'"),
    ({"tool_choice": {"type": "function", "name": "nope"}, "tools": [TOOL]}, "invalid_value", "tool_choice", "not found"),
    ({"tool_choice": "perhaps"}, "invalid_value", "tool_choice", "'required'"),
    ({"text": {"format": {"type": "json_schema", "schema": OBJECT}}}, "missing_required_parameter", "text.format.name", ""),
    ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "missing_required_parameter", "text.format.schema", ""),
    ({"text": {"format": {"type": "json_schema", "name": "x y", "schema": OBJECT}}}, "invalid_value", "text.format.name", ""),
    (
        {"text": schema(**{**OBJECT, "additionalProperties": True})},
        "invalid_json_schema",
        "text.format.schema",
        "additionalProperties",
    ),
    ({"text": schema(**{**OBJECT, "required": []})}, "invalid_json_schema", "text.format.schema", "'a'"),
    ({"text": schema(anyOf=[OBJECT])}, "invalid_json_schema", "text.format.schema", "root"),
    ({"text": schema(**{**OBJECT, "properties": {"a": {"allOf": []}}})}, "invalid_json_schema", "text.format.schema", "allOf"),
    ({"text": schema(**DEEP)}, "invalid_json_schema", "text.format.schema", "levels"),
    *(
        ({"text": schema(**{**OBJECT, "properties": {"a": one}})}, "invalid_json_schema", "text.format.schema", sentence)
        for sentence, one in TEXTS.items()
    ),
    (
        {"text": schema(**{**OBJECT, "properties": WIDE, "required": list(WIDE)})},
        "invalid_json_schema",
        "text.format.schema",
        "5000",
    ),
    ({"text": {"format": {"type": "json_object"}}, "input": "Hello"}, None, "input", "json"),
    (
        {"input": [{"type": "message", "id": "msg_\0", "role": "user", "content": "x"}]},
        "invalid_value",
        "input[0].id",
        "letters",
    ),
    *(
        ({"input": [{"role": "user", "content": [{"type": "input_file", **file}]}]}, code, f"input[0].content[0]{where}", text)
        for file, code, where, text in (
            (
                {"file_data": "data:audio/mpeg;base64,SUQz"},
                "unsupported_file",
                ".file_data",
                "unsupported MIME type 'audio/mpeg'",
            ),
            ({"file_data": "data:Video/MP4;x=y;base64,AA=="}, "unsupported_file", ".file_data", "'Video/MP4'"),
            ({"file_data": "SUQz", "filename": "a.mp3"}, "invalid_value", ".file_data", "data URL"),
            ({"file_data": ""}, "invalid_value", ".file_data", "data URL"),
            ({"file_data": 5}, "invalid_type", ".file_data", "a string"),
            ({"filename": "a.pdf"}, "invalid_value", "", "exactly one of"),
            ({"file_id": "file-x", "file_url": "https://example.com/a.pdf"}, "invalid_value", "", "but got 2"),
            ({"file_url": "http://example.com/a.pdf"}, "invalid_value", ".file_url", "https"),
            ({"file_url": "https://me:x@example.com/a.pdf"}, "invalid_value", ".file_url", "user name"),
            ({"file_id": "file-x", "filename": "x" * 256}, "string_above_max_length", ".filename", "255"),
            ({"zzz": 1}, "unknown_parameter", ".zzz", ""),
        )
    ),
    ({"image": {"context_compression": "enabled"}}, "unsupported_value", "image.context_compression", "'auto', 'disabled'"),
    ({"image": {"context_compression": "no"}}, "invalid_value", "image.context_compression", "'auto'"),
    ({"image": {"zzz": 1}}, "unknown_parameter", "image.zzz", ""),
    ({"image": "auto"}, "invalid_type", "image", "an object"),
    ({"access_programs": {"cyber": "red"}}, "invalid_value", "access_programs.cyber", "'standard'"),
    ({"access_programs": {"zzz": 1}}, "unknown_parameter", "access_programs.zzz", ""),
    ({"access_programs": ["cyber"]}, "invalid_type", "access_programs", "an object"),
    ({"previous_response_id": "resp_\0"}, "previous_response_not_found", "previous_response_id", ""),
    ({"previous_response_id": "resp_nope"}, "previous_response_not_found", "previous_response_id", ""),
    (
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"x": 1}}]}]},
        "unknown_parameter",
        "input[0].content[0].prompt_cache_breakpoint.x",
        "",
    ),
]


class ValidationTest(ApiCase):
    """With a scripted engine whose tape is empty: nothing may reach it."""

    async def test_bad_requests_are_refused_with_the_right_words_also_as_a_stream(self) -> None:
        async with self.serving() as client:
            for body, code, param, text in BAD:
                for stream in (False, True):
                    with self.subTest(body=str(body)[:120], stream=stream):
                        response = await self.post(client, **{"stream": stream, **body})
                        self.refused(response, 400, code, param, text)
            self.assertEqual(await Response.objects.acount() + await Item.objects.acount() + await Event.objects.acount(), 0)

    async def test_bodies_that_are_no_json_object_are_refused(self) -> None:
        async with self.serving() as client:
            for body in (b"", b"{", b"[]", b'"x"', b"\xff\xfe", b'{"model": "m", "input": "\\ud800"}'):
                with self.subTest(body=body):
                    response = await client.post("/v1/responses", body, content_type="application/json")
                    self.assertEqual(response.status_code, 400, response.content)
                    self.assertIsNone(orjson.loads(response.content)["error"]["param"])

    async def test_null_stands_for_absent_in_every_optional_field(self) -> None:
        fields = (
            "instructions",
            "stream",
            "store",
            "tools",
            "tool_choice",
            "text",
            "reasoning",
            "metadata",
            "background",
            "include",
        )
        async with self.serving(record_text(HELLO)) as client:
            response = await self.post(client, **dict.fromkeys((*fields, "temperature", "top_p", "truncation", "conversation")))
            self.assertEqual(response.status_code, 200, response.content)

    async def test_limits_themselves_are_accepted_and_echoed(self) -> None:
        metadata = {f"{n:064}": "v" * 512 for n in range(16)}
        body = {
            "metadata": metadata,
            "safety_identifier": "s" * 128,
            "prompt_cache_key": "k" * 64,
            "max_output_tokens": 16,
        }
        hints = {"mode": "explicit", "ttl": "12h", "prewarm": False, "comparison_response_id": "resp_1"}
        async with self.serving(record_text(HELLO)) as client:
            response = orjson.loads((await self.post(client, **body, prompt_cache_options=hints)).content)
            self.assertEqual({name: response[name] for name in body}, body)

    async def test_options_of_images_and_programs_are_taken_and_the_response_says_what_came_of_them(self) -> None:
        none, disabled, standard = None, {"context_compression": "disabled"}, {"cyber": "standard"}
        requested: list[tuple[dict[str, Any], Any, Any]] = [
            ({}, none, none),
            ({"image": None, "access_programs": None}, none, none),
            ({"image": {}, "access_programs": {}}, disabled, none),
            ({"image": {"context_compression": "auto"}, "access_programs": {"cyber": "standard"}}, disabled, standard),
            ({"image": disabled, "access_programs": {"cyber": "daybreak_red"}}, disabled, standard),
        ]
        async with self.serving(*[record_text(HELLO)] * len(requested), record_text(HELLO)) as client:
            for body, image, programs in requested:
                with self.subTest(body=body):
                    made = await self.made(client, **body)
                    got = orjson.loads((await client.get(f"/v1/responses/{made['id']}")).content)
                    for response in (made, got):
                        with self.subTest(stored=response is got):
                            self.assertEqual((response.get("image"), response["access_programs"]), (image, programs), body)
                            self.assertEqual("image" in response, image is not None)
            compacted = orjson.dumps({"model": "m", "input": "Hi", "image": {"context_compression": "auto"}})
            answer = await client.post("/v1/responses/compact", compacted, content_type="application/json")
            self.assertEqual(orjson.loads(answer.content)["image"], disabled)

    async def test_null_stands_for_absent_at_every_depth_whatever_the_key(self) -> None:
        shell = [
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"], "zzz": None}},
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{**RAN, "outcome": {"type": "timeout", "zzz": None}, "zzz": None}],
            },
        ]
        bodies: tuple[dict[str, Any], ...] = (
            {"text": {"zzz": None, "format": {"type": "text", "zzz": None}}},
            {"reasoning": {"zzz": None}, "stream_options": {"zzz": None}, "prompt_cache_options": {"zzz": None}},
            {"context_management": [{"type": "compaction", "zzz": None}], "background_options": {"zzz": None}},
            {
                "tools": [{"type": "shell", "environment": {"type": "local", "zzz": None}}],
                "tool_choice": {"type": "shell", "zzz": None},
            },
            {"input": [*shell, {"role": "user", "content": "x", "zzz": None}]},
        )
        async with self.serving() as client:
            for body in bodies:
                with self.subTest(body=body):
                    requested = orjson.dumps({"model": "m", "input": "Hi", **body})
                    response = await client.post("/v1/responses/input_tokens", requested, content_type="application/json")
                    self.assertEqual(response.status_code, 200, response.content)
            for conversation in ({"id": None}, {}):
                self.refused(
                    await self.post(client, conversation=conversation), 400, "missing_required_parameter", "conversation.id"
                )

    async def test_wrong_type_of_an_enumerated_parameter_is_refused(self) -> None:
        async with self.serving() as client:
            for body, param in (
                ({"truncation": 5}, "truncation"),
                ({"service_tier": []}, "service_tier"),
                ({"reasoning": {"effort": 5}}, "reasoning.effort"),
                ({"text": {"verbosity": True}}, "text.verbosity"),
                ({"input": [{"role": 5, "content": "x"}]}, "input[0].role"),
            ):
                with self.subTest(body=body):
                    self.refused(await self.post(client, **body), 400, "invalid_type", param, "expected one of '")

    async def test_a_tool_is_echoed_with_all_its_keys_and_strict_as_its_schema_deserves(self) -> None:
        loose = {"type": "function", "name": "loose", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
        async with self.serving(record_text(HELLO)) as client:
            tools = orjson.loads((await self.post(client, tools=[TOOL, loose])).content)["tools"]
            self.assertEqual([tool["strict"] for tool in tools], [True, False])
            self.assertLessEqual({"description", "parameters", "strict", "output_schema"}, set(tools[1]))

    async def test_keys_methods_and_addresses_are_checked_with_json_errors(self) -> None:
        async with self.serving() as client:
            self.refused(await client.get("/v1/models", headers={"Authorization": ""}), 401, "invalid_api_key", None)
            self.refused(await client.get("/v1/models", headers={"Authorization": "Bearer nope"}), 401, "invalid_api_key", None)
            self.refused(await client.put("/v1/responses"), 405, None, None)
            self.refused(await client.get("/v1/nothing"), 404, None, None)
            self.refused(await client.get("/v1/responses/resp_%00"), 404, None, None)
            self.refused(await client.get("/v1/models/x"), 404, "model_not_found", "model")
            self.refused(await client.get("/v1/responses/resp_x?starting_after=1"), 400, "invalid_value", "starting_after")
            self.refused(
                await client.get("/v1/responses/resp_x?stream=true&starting_after=-1"),
                400,
                "integer_below_min_value",
                "starting_after",
            )
            self.refused(
                await client.get("/v1/responses/resp_x?stream=true&starting_after=x"), 400, "invalid_type", "starting_after"
            )

    async def test_an_unknown_reference_is_404(self) -> None:
        async with self.serving() as client:
            for uid in ("msg_nope", "msg_\0"):
                response = await self.post(
                    client, input=[{"type": "item_reference", "id": uid}, {"role": "user", "content": "x"}]
                )
                self.refused(response, 404, None, "input", "not found")

    async def test_a_trailing_slash_makes_no_difference(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            response = await client.post(
                "/v1/responses/", orjson.dumps({"model": "m", "input": "x"}), content_type="application/json"
            )
            self.assertEqual(response.status_code, 200)

    async def test_a_prompt_that_does_not_fit_is_refused(self) -> None:
        async with self.serving() as client:
            self.engine._max_model_len = 64
            response = await self.post(client, input="word " * 200)
            self.refused(response, 400, "context_length_exceeded", "input", "context window")
