"""Tools of a real MCP server in responses: listings, calls, approvals, failures."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from responses_app.engines.replay.engine import Recording
from responses_app.protocol.reducer import fold
from tests.support.api.case import ApiCase, bare, record_text
from tests.support.mcp.raw_program import is_running, raw_program, reply_text
from tests.support.runs.server_tools import LIMIT_S, START, RoundsCase, answer, shows
from tests.support.waiting import eventually


def call(function: str, arguments: str, end: str = "<|call|>") -> str:
    return f"<|channel|>commentary to=functions.{function} <|constrain|>json<|message|>{arguments}{end}"


WEATHER = call("tests__weather", '{"city": "Oslo"}')
WARM = "It is warm in Oslo."


@override_settings(RESPONSES_MCP_PRIVATE_HOSTS=frozenset({"127.0.0.1"}))
@pytest.mark.usefixtures("class_url")
class McpCallCase(RoundsCase):
    url: str

    @pytest.fixture(autouse=True)
    def class_url(self, mcp_url: str) -> None:
        type(self).url = mcp_url

    new_hub = ApiCase.new_hub

    def tool(self, **fields: Any) -> dict[str, Any]:
        return {"type": "mcp", "server_label": "tests", "server_url": self.url, "require_approval": "never", **fields}

    async def outcome(self, text: str, *then: Recording, **fields: Any) -> dict[str, Any]:
        """Let the model write `text`, then `then`. Return the call's item."""
        async with self.serving(record_text(text), *then) as client:
            last = (await self.stream(client, tools=[self.tool(**fields)]))[-1]["response"]
            self.assertEqual(last["status"], "completed", last["error"])
            return self.calls(last)[0]


class CallTest(McpCallCase):
    async def test_tools_are_listed_and_called(self) -> None:
        first = record_text(WEATHER, match=shows("Get the weather of a city"))
        async with self.serving(first, record_text(answer("Warm."), match=shows(WARM))) as client:
            events = await self.stream(client, tools=[self.tool()])
            last = events[-1]["response"]
            self.assertEqual([item["type"] for item in last["output"]], ["mcp_list_tools", "mcp_call", "message"])
            listing, made, _ = last["output"]
            self.assertIn("weather", [tool["name"] for tool in listing["tools"]])
            self.assertEqual(
                (made["name"], made["output"], made["error"], made["status"]), ("weather", WARM, None, "completed")
            )
            self.assertEqual(fold(bare(events)), last)
            # The API counts searches and generated images alone.
            self.assertEqual(last["tool_usage"]["web_search"], {"num_requests": 0})

    async def test_the_next_response_of_the_chain_lists_nothing_and_calls(self) -> None:
        lines = [record_text(answer("Hello.")), record_text(WEATHER), record_text(answer("Warm."), match=shows(WARM))]
        async with self.serving(*lines) as client:
            made = await self.made(client, tools=[self.tool()])
            again = await self.made(client, tools=[self.tool()], previous_response_id=made["id"])
            self.assertEqual([item["type"] for item in again["output"]], ["mcp_call", "message"])

    async def test_allowed_tools_limit_the_listing_and_the_prompt(self) -> None:
        async with self.serving(
            record_text(answer("Hello."), match=lambda prompt: not shows("Delete a file")(prompt))
        ) as client:
            made = await self.made(client, tools=[self.tool(allowed_tools={"read_only": True})])
            names = [tool["name"] for tool in made["output"][0]["tools"]]
            self.assertIn("weather", names)
            self.assertNotIn("delete", names)

    async def test_calls_are_visible_while_the_tool_runs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            entered, gate = Path(folder, "entered"), Path(folder, "gate")
            arguments = f'{{"entered": "{entered}", "gate": "{gate}"}}'
            async with self.serving(record_text(call("tests__wait", arguments)), record_text(answer("Done."))) as client:
                answered = asyncio.ensure_future(self.post(client, stream=True, tools=[self.tool()]))
                await eventually(entered.exists)
                frames = [frame.type for run in self.hub.runs.values() for frame in run.broadcast.frames]
                self.assertEqual(frames[-1], "response.mcp_call_arguments.done")
                self.assertIn("response.mcp_call.in_progress", frames)
                gate.touch()  # noqa: ASYNC240 - opens the gate of the tool
                async with asyncio.timeout(LIMIT_S):
                    last = self.judge(await self.read(await answered))[-1]["response"]
                self.assertEqual(self.calls(last)[0]["output"], "done")

    @pytest.mark.slow
    async def test_a_choice_of_a_tool_forces_its_call(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(answer("Warm."))) as client:
            choice = {"type": "mcp", "server_label": "tests", "name": "weather"}
            last = (await self.stream(client, tools=[self.tool()], tool_choice=choice))[-1]["response"]
            self.assertEqual((last["status"], last["tool_choice"]), ("completed", choice))
            constraint = self.engine.requests[0].constraint
            assert constraint is not None
            self.assertIn("tests__weather", str(constraint.value))
            self.assertNotIn("tests__delete", str(constraint.value))


class FailureTest(McpCallCase):
    async def test_a_tool_that_fails_is_told_to_the_model(self) -> None:
        then = record_text(answer("It failed."), match=shows("mcp_tool_execution_error"))
        made = await self.outcome(call("tests__fail", '{"reason": "no paper"}'), then)
        self.assertEqual((made["status"], made["output"]), ("failed", None))

    async def test_integers_of_arguments_keep_their_digits(self) -> None:
        made = await self.outcome(call("tests__add", '{"a": 123456789012345678901, "b": 1}'), record_text(answer("Done.")))
        self.assertEqual((made["error"], made["output"]), (None, "123456789012345678902"))

    async def test_arguments_that_are_no_json_fail_the_call(self) -> None:
        made = await self.outcome(call("tests__weather", '{"city": Oslo}'), record_text(answer("Sorry.")))
        self.assertEqual((made["status"], made["error"]["code"]), ("failed", -32602))

    async def test_an_unknown_tool_fails_the_call(self) -> None:
        made = await self.outcome(call("tests__dance", "{}"), record_text(answer("Sorry."), match=shows("has no tool")))
        self.assertEqual((made["name"], made["error"]["code"]), ("dance", -32601))

    async def test_a_tool_that_is_not_allowed_fails_the_call(self) -> None:
        text = call("tests__delete", '{"path": "/"}')
        made = await self.outcome(text, record_text(answer("Sorry.")), allowed_tools=["weather"])
        self.assertEqual((made["status"], made["error"]["code"]), ("failed", -32601))

    async def test_a_listing_that_fails_is_told_to_the_model(self) -> None:
        with override_settings(RESPONSES_MCP_PRIVATE_HOSTS=frozenset({"localhost"})):
            async with self.serving(record_text(answer("Sorry."), match=shows("The listing failed"))) as client:
                made = await self.made(client, tools=[self.tool(server_url="http://localhost:1/mcp")])
        self.assertEqual((made["status"], made["output"][0]["tools"]), ("completed", []))
        self.assertEqual(made["output"][0]["error"], "The MCP server cannot be reached.")


# A tool that ends its program at the first call; with the annotation and without.
DIE_ONCE = f"""
        path = message["params"]["arguments"]["path"]
        open(path, "a").write("run\\n")
        if len(open(path).readlines()) == 1:
            os._exit(1)
        {reply_text("'alive'")}"""
DYING_TOOLS = [
    {"name": "die_reading", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "die_writing", "inputSchema": {"type": "object"}},
]
PROGRAMS = {"tests": {"command": list(raw_program(DIE_ONCE, tools=repr(DYING_TOOLS)))}}


@override_settings(RESPONSES_MCP_SERVERS=PROGRAMS)
class LostConnectionTest(McpCallCase):
    """A program that ends during the first call of a tool."""

    async def runs_of(self, name: str) -> tuple[dict[str, Any], int]:
        """Let the model call the tool `name`. Return the call's item, and how often the tool ran."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "runs")
            text = call(f"tests__{name}", f'{{"path": "{path}"}}')
            async with self.serving(record_text(text), record_text(answer("Done."))) as client:
                tool = {"type": "mcp", "server_label": "tests", "require_approval": "never"}
                made = await self.made(client, tools=[tool])
                return self.calls(made)[0], len(path.read_text().splitlines())  # noqa: ASYNC240 - a short read

    @pytest.mark.slow
    async def test_call_of_a_read_only_tool_is_made_again(self) -> None:
        made, runs = await self.runs_of("die_reading")
        self.assertEqual((made["status"], made["output"], runs), ("completed", "alive", 2))

    async def test_call_of_a_tool_that_may_write_is_made_once(self) -> None:
        made, runs = await self.runs_of("die_writing")
        self.assertEqual((made["status"], runs), ("failed", 1))
        self.assertEqual(made["error"]["message"], "The MCP server closed the connection before it had answered.")


@override_settings(RESPONSES_MCP_SERVERS={"tests": {"command": list(raw_program(reply_text("os.getpid()")))}})
class ProgramReuseTest(McpCallCase):
    async def test_program_serves_the_responses_of_a_project_and_ends_with_the_server(self) -> None:
        texts = [call("tests__tool", "{}"), answer("Done.")]
        async with self.serving(*map(record_text, texts * 2)) as client:
            tool = {"type": "mcp", "server_label": "tests", "require_approval": "never"}
            first, second = [self.calls(await self.made(client, tools=[tool]))[0]["output"] for _ in range(2)]
            self.assertEqual(first, second)
            self.assertTrue(is_running(int(first)))
        self.assertFalse(is_running(int(first)))


class ApprovalTest(McpCallCase):
    async def test_an_approved_call_is_made_before_the_model_goes_on(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(answer("Warm."), match=shows(WARM))) as client:
            first = await self.made(client, tools=[self.tool(require_approval="always")])
            request = first["output"][-1]
            self.assertEqual((request["type"], request["name"]), ("mcp_approval_request", "weather"))
            fields = {"tools": [self.tool(require_approval="always")], "previous_response_id": first["id"]}
            approval = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
            second = await self.made(client, input=[approval], **fields)
            self.assertEqual([item["type"] for item in second["output"]], ["mcp_call", "message"])
            made = second["output"][0]
            self.assertEqual((made["approval_request_id"], made["output"]), (request["id"], WARM))
            refused = await self.post(client, input=[approval], **fields)
            self.assertEqual(refused.status_code, 400)
            self.assertIn("already", refused.json()["error"]["message"])

    async def test_a_denied_call_is_not_made_and_the_model_reads_the_reason(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(answer("Well."), match=shows("Too cold outside"))) as client:
            first = await self.made(client, tools=[self.tool(require_approval="always")])
            denial = {
                "type": "mcp_approval_response",
                "approval_request_id": first["output"][-1]["id"],
                "approve": False,
                "reason": "Too cold outside",
            }
            second = await self.made(client, input=[denial], tools=[self.tool()], previous_response_id=first["id"])
            self.assertEqual([item["type"] for item in second["output"]], ["message"])

    async def test_calls_without_approval_are_made_beside_calls_that_wait(self) -> None:
        both = WEATHER.replace("<|call|>", "<|end|>") + START + call("tests__delete", '{"path": "/x"}')
        rule = {"never": {"read_only": True}}
        async with self.serving(record_text(both)) as client:
            made = await self.made(client, tools=[self.tool(require_approval=rule)])
            types = [item["type"] for item in made["output"]]
            self.assertEqual(types, ["mcp_list_tools", "mcp_call", "mcp_approval_request"])
            self.assertEqual(made["output"][1]["output"], WARM)
