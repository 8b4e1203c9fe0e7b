"""Shell, patch and search: the client runs them, the server passes them on in their own items."""

from __future__ import annotations

from typing import Any

import orjson
from openai.types.responses import Response as WireResponse

from tests.support.api.case import ENCODING, HELLO, TOOL, ApiCase, record_text
from tests.support.api.tool_calls import call

SHELL: dict[str, Any] = {"type": "shell", "environment": {"type": "local"}}
RESULT = {"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
PATCH = {"type": "delete_file", "path": "a.txt", "diff": ""}
MAIL = {**TOOL, "name": "send_mail", "defer_loading": True}
SEARCH = {"type": "tool_search", "execution": "client"}
HOSTED_SEARCH = {"type": "tool_search"}


class ClientToolsTest(ApiCase):
    """With a scripted engine."""

    async def test_a_shell_call_goes_out_and_its_output_is_told(self) -> None:
        async with self.serving(
            record_text(call("shell", {"commands": ["ls", "pwd"]})), record_text(HELLO), record_text(HELLO)
        ) as client:
            events = await self.stream(client, tools=[SHELL])
            commands = [e["command"] for e in events if e["type"] == "response.shell_call_command.done"]
            self.assertEqual(commands, ["ls", "pwd"])
            end = events[-1]["response"]
            WireResponse.model_validate(end, strict=True)
            made = end["output"][-1]
            self.assertEqual((made["type"], made["action"]["commands"], made["status"]), ("shell_call", commands, "completed"))
            self.assertEqual(end["tools"], [SHELL])
            output = {"type": "shell_call_output", "call_id": made["call_id"], "output": [RESULT]}
            again = await self.post(client, input=[output], previous_response_id=end["id"], tools=[SHELL])
            self.assertEqual(again.status_code, 200, again.content)
            self.assertIn("a.txt", ENCODING.decode(list(self.engine.requests[-1].prompt)))
            replayed = [{"role": "user", "content": "Hi"}, *end["output"], output]
            stateless = await self.post(client, input=replayed, store=False, tools=[SHELL])
            self.assertEqual(stateless.status_code, 200, stateless.content)

    async def test_a_patch_is_an_item_of_its_own_and_can_be_forced(self) -> None:
        async with self.serving(record_text(call("apply_patch", PATCH)), record_text(HELLO)) as client:
            tools, choice = [{"type": "apply_patch"}, TOOL], {"type": "apply_patch"}
            made = orjson.loads((await self.post(client, tools=tools, tool_choice=choice)).content)
            WireResponse.model_validate(made, strict=True)
            self.assertEqual(made["tool_choice"], choice)
            self.assertEqual(made["output"][-1]["operation"], {"type": "delete_file", "path": "a.txt"})
            tag = orjson.dumps(self.engine.requests[-1].constraint.value).decode()  # type: ignore[union-attr]
            self.assertIn("functions.apply_patch", tag)
            self.assertNotIn("get_weather", tag)
            item = made["output"][-1]
            output = {"type": "apply_patch_call_output", "call_id": item["call_id"], "status": "completed"}
            again = await self.post(client, input=[output], previous_response_id=made["id"], tools=tools)
            self.assertEqual(again.status_code, 200, again.content)

    async def test_a_local_shell_may_be_answered_by_the_id_of_its_item(self) -> None:
        async with self.serving(
            record_text(call("local_shell", {"command": ["ls"]})), record_text(HELLO), record_text(HELLO)
        ) as client:
            made = orjson.loads((await self.post(client, tools=[{"type": "local_shell"}])).content)
            WireResponse.model_validate(made, strict=True)
            item = made["output"][-1]
            self.assertEqual(item["action"]["command"], ["ls"])
            for uid in (item["id"], item["call_id"]):
                with self.subTest(uid=uid):
                    output = {"type": "local_shell_call_output", "id": uid, "output": "a.txt"}
                    answer = await self.post(
                        client, input=[output], previous_response_id=made["id"], tools=[{"type": "local_shell"}]
                    )
                    self.assertEqual(answer.status_code, 200, answer.content)

    async def test_a_search_brings_a_deferred_tool(self) -> None:
        async with self.serving(record_text(call("tool_search", {"query": "mail"})), record_text(HELLO)) as client:
            tools = [SEARCH, MAIL]
            made = orjson.loads((await self.post(client, tools=tools)).content)
            WireResponse.model_validate(made, strict=True)
            self.assertEqual(made["tools"][1]["defer_loading"], True)
            self.assertNotIn("send_mail", ENCODING.decode(list(self.engine.requests[-1].prompt)))
            item = made["output"][-1]
            self.assertEqual((item["type"], item["arguments"]), ("tool_search_call", {"query": "mail"}))
            output = {"type": "tool_search_output", "call_id": item["call_id"], "tools": [MAIL]}
            again = await self.post(client, input=[output], previous_response_id=made["id"], tools=tools)
            self.assertEqual(again.status_code, 200, again.content)
            self.assertIn("send_mail", ENCODING.decode(list(self.engine.requests[-1].prompt)))

    async def test_deferred_tools_are_offered_from_the_start_beside_a_hosted_search(self) -> None:
        space = {"type": "namespace", "name": "crm", "description": "", "tools": [{**MAIL, "name": "find_customer"}]}
        loaded = {key: value for key, value in MAIL.items() if key != "defer_loading"}
        plain = {**space, "tools": [{**loaded, "name": "find_customer"}]}
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            for search in (HOSTED_SEARCH, {**HOSTED_SEARCH, "execution": "server"}):
                made = orjson.loads((await self.post(client, tools=[search, MAIL, space])).content)
                WireResponse.model_validate(made, strict=True)
                self.assertEqual(made["tools"][0], {"type": "tool_search", "execution": "server"})
                self.assertTrue(made["tools"][1]["defer_loading"])
            await self.post(client, tools=[loaded, plain])
            *searched, offered = (request.prompt for request in self.engine.requests)
            self.assertEqual(searched, [offered, offered])

    async def test_invalid_client_tools_are_refused_by_path(self) -> None:
        shell = {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls"]}}
        output = {"type": "shell_call_output", "call_id": "call_1", "output": [{**RESULT, "outcome": {"type": "exit"}}]}
        missing = "input[0].output[0].outcome.exit_code"
        async with self.serving() as client:
            for body, code, param in (
                ({"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}, "invalid_value", None),
                ({"tools": [{"type": "tool_search", "execution": "cloud"}]}, "invalid_value", "tools[0].execution"),
                ({"tools": [HOSTED_SEARCH], "tool_choice": {"type": "tool_search"}}, "invalid_value", "tool_choice.type"),
                ({"tools": [HOSTED_SEARCH], "tool_choice": "required"}, "invalid_value", "tool_choice"),
                ({"tools": [MAIL]}, "invalid_value", "tools[0].defer_loading"),
                ({"tools": [SHELL, {**TOOL, "name": "shell"}]}, "invalid_value", "tools[1].name"),
                ({"tools": [{"type": "programmatic_tool_calling"}]}, "invalid_value", "tools[0].type"),
                ({"tool_choice": {"type": "shell"}, "tools": [TOOL]}, "invalid_value", "tool_choice"),
                ({"input": [{**shell, "id": "msg_1"}]}, "invalid_value", "input[0].id"),
                ({"input": [{"type": "shell_call", "call_id": "c", "action": {}}]}, "missing_required_parameter", None),
                ({"input": [output]}, "missing_required_parameter", missing),
                ({"input": [{**output, "output": [RESULT]}]}, None, "input"),
                ({"input": [shell]}, None, "input"),
            ):
                with self.subTest(body=body):
                    response = await self.post(client, **body)
                    error = orjson.loads(response.content)["error"]
                    self.assertEqual(response.status_code, 400)
                    self.assertEqual(error["code"], code)
                    self.assertIn(error["param"], [param] if param else [error["param"]])
