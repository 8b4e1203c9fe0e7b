"""Custom tools, namespaces and tools that come later: declared, called, answered, chosen and forced."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import override_settings
from openai.types.responses import Response as WireResponse

from responses_app.models import Event
from tests.support.api.case import ENCODING, HELLO, TOOL, ApiCase, record_text
from tests.support.store.stored_events import read_stored_events

EXEC = {"type": "custom", "name": "exec", "description": "Runs code"}
CODE = 'print("a\\tb")\nprint(2)'
REGEX = {"type": "grammar", "syntax": "regex", "definition": "[a-z]+\\n"}
BAD_REGEX = {"type": "grammar", "syntax": "regex", "definition": "(?=a)b"}
LONG_REGEX = {**BAD_REGEX, "definition": "a" * 32_769}
BAD_LARK = {"type": "grammar", "syntax": "lark", "definition": "start: nothing"}
RUN = (
    "<|channel|>analysis<|message|>Run it.<|end|><|start|>assistant<|channel|>commentary to=functions.exec <|constrain|>json"
    f"<|message|>{orjson.dumps({'input': CODE}).decode()}<|call|>"
)


class CustomTest(ApiCase):
    """With a scripted engine."""

    async def test_custom_input_streams_as_text_and_its_output_reaches_the_model(self) -> None:
        async with self.serving(record_text(RUN), record_text(HELLO)) as client:
            events = await self.stream(client, tools=[EXEC, TOOL])
            deltas = [e["delta"] for e in events if e["type"] == "response.custom_tool_call_input.delta"]
            self.assertEqual("".join(deltas), CODE)
            self.assertGreater(len(deltas), 3)
            end = events[-1]["response"]
            WireResponse.model_validate(end, strict=True)
            call = end["output"][-1]
            self.assertEqual((call["type"], call["name"], call["input"]), ("custom_tool_call", "exec", CODE))
            self.assertTrue(call["id"].startswith("ctc_"))
            self.assertEqual(end["tools"][0], {**EXEC, "format": {"type": "text"}})
            self.assertEqual(orjson.loads((await client.get(f"/v1/responses/{end['id']}")).content), end)
            unanswered = await self.post(client, previous_response_id=end["id"], tools=[EXEC])
            self.refused(unanswered, 400, None, "input", "No tool output found")
            output = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "a b"}
            response = await self.post(client, input=[output], previous_response_id=end["id"], tools=[EXEC])
            self.assertEqual(response.status_code, 200, response.content)
            prompt = ENCODING.decode(list(self.engine.requests[-1].prompt))
            self.assertIn(orjson.dumps({"input": CODE}).decode().split(":", 1)[1], prompt)
            self.assertIn("a b", prompt)

    async def test_a_client_may_replay_what_it_was_given(self) -> None:
        async with self.serving(record_text(RUN), record_text(HELLO)) as client:
            made = orjson.loads((await self.post(client, tools=[EXEC], store=False)).content)
            output = {
                "type": "custom_tool_call_output",
                "call_id": made["output"][-1]["call_id"],
                "output": [{"type": "input_text", "text": "a b"}],
            }
            items: list[Any] = [{"role": "user", "content": "Hi"}, *made["output"], output]
            response = await self.post(client, input=items, tools=[EXEC], store=False)
            self.assertEqual(response.status_code, 200, response.content)

    async def test_a_grammar_binds_its_text_and_is_told(self) -> None:
        async with self.serving(record_text(RUN)) as client:
            made = orjson.loads((await self.post(client, tools=[{**EXEC, "format": REGEX}], tool_choice="required")).content)
            self.assertEqual(made["tools"][0]["format"], REGEX)
            WireResponse.model_validate(made, strict=True)
            request = self.engine.requests[-1]
            self.assertIn("root ::= ", orjson.dumps(request.constraint.value).decode())  # type: ignore[union-attr]
            self.assertIn("[a-z]+", ENCODING.decode(list(request.prompt)))

    async def test_custom_tool_can_be_forced_and_allowed(self) -> None:
        named = {"type": "custom", "name": "exec"}
        allowed = {"type": "allowed_tools", "mode": "required", "tools": [named]}
        async with self.serving(record_text(RUN), record_text(RUN), record_text(RUN)) as client:
            for choice in (named, allowed, {**allowed, "mode": "auto"}):
                with self.subTest(choice=choice):
                    made = orjson.loads((await self.post(client, tools=[EXEC, TOOL], tool_choice=choice)).content)
                    self.assertEqual(made["tool_choice"], choice)
                    self.assertEqual(made["output"][-1]["type"], "custom_tool_call")
                    tag = orjson.dumps(self.engine.requests[-1].constraint.value).decode()  # type: ignore[union-attr]
                    self.assertIn("functions.exec", tag)
                    self.assertNotIn("get_weather", tag)

    async def test_invalid_custom_tools_are_refused_by_path(self) -> None:
        allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]}
        async with self.serving() as client:
            for body, code, param in (
                ({"tools": [{"type": "custom"}]}, "missing_required_parameter", "tools[0].name"),
                ({"tools": [{**EXEC, "parameters": {}}]}, "unknown_parameter", "tools[0].parameters"),
                ({"tools": [{**EXEC, "format": BAD_LARK}]}, "invalid_grammar", "tools[0].format.definition"),
                ({"tools": [{**EXEC, "format": BAD_REGEX}]}, "invalid_grammar", "tools[0].format.definition"),
                ({"tools": [{**EXEC, "format": LONG_REGEX}]}, "invalid_grammar", "tools[0].format.definition"),
                ({"tools": [{**EXEC, "format": {**REGEX, "syntax": "peg"}}]}, "invalid_value", "tools[0].format.syntax"),
                ({"tools": [{**EXEC, "format": {"type": "grammar"}}]}, "missing_required_parameter", "tools[0].format.syntax"),
                ({"tools": [{**EXEC, "format": {"type": "json"}}]}, "invalid_value", "tools[0].format.type"),
                ({"tools": [EXEC, {**TOOL, "name": "exec"}]}, "invalid_value", "tools[1].name"),
                ({"tools": [EXEC], "tool_choice": {"type": "function", "name": "exec"}}, "invalid_value", "tool_choice"),
                ({"tools": [TOOL], "tool_choice": {**allowed, "tools": []}}, "array_below_min_length", "tool_choice.tools"),
                ({"tools": [TOOL], "tool_choice": {**allowed, "mode": "some"}}, "invalid_value", "tool_choice.mode"),
                ({"tools": [EXEC], "tool_choice": allowed}, "invalid_value", "tool_choice"),
                (
                    {"tools": [TOOL], "tool_choice": {**allowed, "tools": [{"type": "web_search"}]}},
                    "invalid_value",
                    "tool_choice",
                ),
                (
                    {"tools": [TOOL], "tool_choice": {**allowed, "tools": [{"type": "x"}]}},
                    "invalid_value",
                    "tool_choice.tools[0].type",
                ),
                (
                    {"tools": [TOOL], "tool_choice": {**allowed, "tools": [{}]}},
                    "missing_required_parameter",
                    "tool_choice.tools[0].type",
                ),
                ({"tools": [TOOL], "tool_choice": {}}, "missing_required_parameter", "tool_choice.type"),
                ({"tools": [TOOL], "tool_choice": {"type": 5}}, "invalid_type", "tool_choice.type"),
                ({"tools": [TOOL], "tool_choice": {"type": "any"}}, "invalid_value", "tool_choice.type"),
                (
                    {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "x"}]},
                    "missing_required_parameter",
                    "input[0].input",
                ),
                (
                    {"input": [{"type": "custom_tool_call", "id": "fc_1", "call_id": "c", "name": "x", "input": ""}]},
                    "invalid_value",
                    "input[0].id",
                ),
            ):
                with self.subTest(body=str(body)[:90]):
                    self.refused(await self.post(client, **body), 400, code, param)


CRM = {"type": "namespace", "name": "crm", "description": "Customers", "tools": [TOOL, EXEC]}
LOOK = '<|channel|>commentary to=functions.crm__get_weather <|constrain|>json<|message|>{"city":"Paris"}<|call|>'


class NamespaceTest(ApiCase):
    """With a scripted engine."""

    async def test_a_call_has_its_namespace_and_goes_back_with_it(self) -> None:
        async with self.serving(record_text(LOOK), record_text(HELLO), record_text(HELLO)) as client:
            events = await self.stream(client, tools=[CRM])
            end = events[-1]["response"]
            WireResponse.model_validate(end, strict=True)
            call = end["output"][-1]
            self.assertEqual((call["type"], call["namespace"], call["name"]), ("function_call", "crm", "get_weather"))
            self.assertIn("crm__get_weather", ENCODING.decode(list(self.engine.requests[-1].prompt)))
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
            for body in ({"input": [output], "previous_response_id": end["id"]}, {"input": [*end["output"], output]}):
                with self.subTest(fields=list(body)):
                    response = await self.post(client, tools=[CRM], **body)
                    self.assertEqual(response.status_code, 200, response.content)
                    self.assertIn("functions.crm__get_weather", ENCODING.decode(list(self.engine.requests[-1].prompt)))

    async def test_a_custom_tool_of_a_namespace_goes_back_as_it_came(self) -> None:
        run = RUN.replace("functions.exec", "functions.crm__exec")
        async with self.serving(record_text(run), record_text(HELLO)) as client:
            made = orjson.loads((await self.post(client, tools=[CRM])).content)
            call = made["output"][-1]
            self.assertEqual((call["type"], call["namespace"], call["input"]), ("custom_tool_call", "crm", CODE))
            output = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "a b"}
            response = await self.post(client, tools=[CRM], input=[*made["output"], output])
            self.assertEqual(response.status_code, 200, response.content)
            self.assertIn("functions.crm__exec", ENCODING.decode(list(self.engine.requests[-1].prompt)))

    async def test_the_namespace_functions_is_that_of_harmony(self) -> None:
        space = {**CRM, "name": "functions"}
        async with self.serving(record_text(LOOK.replace("crm__", ""))) as client:
            end = (await self.stream(client, tools=[space]))[-1]["response"]
            call = end["output"][-1]
            self.assertEqual((call["type"], call["namespace"], call["name"]), ("function_call", "functions", "get_weather"))
            prompt = ENCODING.decode(list(self.engine.requests[-1].prompt))
            self.assertNotIn("functions__", prompt)
            self.refused(await self.post(client, tools=[TOOL, space]), 400, "invalid_value", "tools[1].name")

    async def test_tools_may_come_as_an_item(self) -> None:
        added = {"type": "additional_tools", "role": "developer", "tools": [CRM]}
        async with self.serving(record_text(LOOK)) as client:
            made = orjson.loads((await self.post(client, input=[added, {"role": "user", "content": "Hi"}])).content)
            self.assertEqual((made["tools"], made["output"][-1]["namespace"]), ([], "crm"))
            listed = orjson.loads((await client.get(f"/v1/responses/{made['id']}/input_items?order=asc")).content)["data"]
            self.assertEqual([item["type"] for item in listed], ["additional_tools", "message"])

    async def test_inactive_tools_are_repeated_and_not_offered(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(HELLO)) as client:
            for streamed in (False, True):
                with self.subTest(streamed=streamed):
                    search = {"type": "web_search", "external_web_access": streamed}
                    response = await self.post(client, tools=[search, TOOL], stream=streamed)
                    self.assertEqual((response.status_code, response["x-inactive-tools"]), (200, "web_search"))
                    end = (await self.read(response))[-1]["response"] if streamed else orjson.loads(response.content)
                    self.assertEqual(end["tools"][0], search)
                    WireResponse.model_validate(end, strict=True)
            with override_settings(RESPONSES_INACTIVE_TOOLS=frozenset({"file_search"})):
                other = {"type": "file_search", "vector_store_ids": ["x"]}
                self.assertEqual((await self.post(client, tools=[other]))["x-inactive-tools"], "file_search")
                self.refused(
                    await self.post(client, tools=[{"type": "code_interpreter"}]), 400, "invalid_value", "tools[0].type"
                )
            self.refused(await self.post(client, tools=[{"type": "web_search"}]), 400, "invalid_value", "tools[0].type")

    async def test_tools_that_the_server_would_run_cannot_be_chosen_and_may_be_allowed(self) -> None:
        """D19: what is repeated without being offered is never called, whatever the choice; and what is not there cannot be chosen."""
        kinds = (
            "web_search",
            "web_search_preview",
            "file_search",
            "code_interpreter",
            "image_generation",
            "programmatic_tool_calling",
            "mcp",
        )
        search = {"type": "web_search", "external_web_access": False}
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            for kind in kinds:
                choice = {"type": kind, **({"server_label": "x"} if kind == "mcp" else {})}
                allowed = {"type": "allowed_tools", "mode": "auto", "tools": [choice]}
                name = choice.get("server_label", kind)
                for streamed in (False, True):
                    for made in (choice, allowed):
                        response = await self.post(client, tools=[TOOL], tool_choice=made, stream=streamed)
                        self.refused(response, 400, "invalid_value", "tool_choice", f"'{name}' not found in 'tools'")
                with override_settings(RESPONSES_INACTIVE_TOOLS=frozenset(kinds)):
                    response = await self.post(client, tools=[TOOL, choice], tool_choice=choice)
                    self.refused(response, 400, "invalid_value", "tool_choice", "runs no tools of that type")
                    required = {**allowed, "mode": "required"}
                    response = await self.post(client, tools=[TOOL, choice], tool_choice=required)
                    self.refused(response, 400, "invalid_value", "tool_choice")
            both: dict[str, Any] = {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "web_search"}, {"type": "function", "name": "get_weather"}],
            }
            for tool_choice in (both, {"type": "allowed_tools", "tools": [{"type": "web_search"}]}):
                with self.subTest(tool_choice=tool_choice):
                    response = await self.made(client, tools=[TOOL, search], tool_choice=tool_choice)
                    self.assertEqual(response["tool_choice"], {"mode": "auto", **tool_choice})

    @override_settings(RESPONSES_INACTIVE_TOOLS=frozenset({"mcp"}))
    async def test_the_secrets_of_an_inactive_tool_are_told_to_nobody(self) -> None:
        """Checklist 60."""
        mcp = {
            "type": "mcp",
            "server_label": "x",
            "server_url": "https://example.org",
            "authorization": "s3cret",
            "headers": {"k": "s3cret"},
        }
        async with self.serving(record_text(HELLO)) as client:
            response = await self.post(client, tools=[mcp])
            self.assertEqual(
                orjson.loads(response.content)["tools"], [{key: mcp[key] for key in ("type", "server_label", "server_url")}]
            )
            self.assertNotIn("s3cret", str(await read_stored_events(Event.objects.all())))

    async def test_invalid_namespaces_are_refused_by_path(self) -> None:
        async with self.serving() as client:
            for tools, code, param in (
                ([{**CRM, "tools": []}], "array_below_min_length", "tools[0].tools"),
                ([{**CRM, "tools": [CRM]}], "invalid_value", "tools[0].tools[0].type"),
                ([{**CRM, "tools": [TOOL, TOOL]}], "invalid_value", "tools[0].tools[1].name"),
                ([CRM, {**TOOL, "name": "crm__exec"}], "invalid_value", "tools[1].name"),
                ([{**CRM, "tools": [{**TOOL, "strict": "x"}]}], "invalid_type", "tools[0].tools[0].strict"),
                ([{"type": "namespace", "tools": [TOOL]}], "missing_required_parameter", "tools[0].name"),
            ):
                with self.subTest(tools=str(tools)[:80]):
                    self.refused(await self.post(client, tools=tools), 400, code, param)
                    item = {"type": "additional_tools", "role": "developer", "tools": tools}
                    self.refused(await self.post(client, input=[item]), 400, code, f"input[0].{param}")
