"""Server tools together: forced by `tool_choice`, limited by `max_tool_calls`, over a WebSocket, and with `store: false`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api.server_tools_case import CODE_TOOL, WEB_TOOL, ChatTexts, HarmonyTexts, ServerToolsCase
from tests.support.api.websocket_case import SocketCase

INCLUDES = ["code_interpreter_call.outputs", "file_search_call.results", "web_search_call.results"]
# Type of the tool -> function, arguments, and a text of the result.
USES: dict[str, tuple[str, dict[str, Any], str]] = {
    "code_interpreter": ("python", {"code": "print(6 * 7 * 1000)"}, "42000"),
    "file_search": ("file_search", {"query": "foxes hunt"}, "Foxes hunt at night."),
    "web_search": ("web_search", {"query": "moon tides"}, "The moon causes tides."),
}


class ServerToolsTest(ServerToolsCase, SocketCase):
    __test__ = False

    def use(self, kind: str, *shown: str) -> Any:
        """Return a recording with a call of the tool `kind`."""
        function, arguments, _ = USES[kind]
        return self.record(type(self).call(function, **arguments), *shown)

    def conclude(self, kind: str, text: str = "Done.") -> Any:
        """Return a recording with an answer, for a prompt that contains the result of the tool `kind`."""
        return self.record(type(self).answer(text), USES[kind][2])

    async def check_forced(self, kind: str) -> None:
        async with self.serving(self.use(kind), self.conclude(kind)) as client:
            made = await self.made(client, tools=self.declarations, tool_choice={"type": kind})
            first, second = self.engine.requests
        self.assertEqual([item["type"] for item in made["output"]], [f"{kind}_call", "message"])
        self.assertEqual(made["tool_choice"], {"type": kind})
        allowed = [
            [one for one in USES if type(self).mark(USES[one][0]) in str(request.constraint)] for request in (first, second)
        ]
        self.assertEqual(allowed, [[kind], list(USES)])

    async def test_choice_of_the_code_interpreter_forces_its_first_round(self) -> None:
        await self.check_forced("code_interpreter")

    async def test_choice_of_the_file_search_forces_its_first_round(self) -> None:
        await self.check_forced("file_search")

    async def test_choice_of_the_web_search_forces_its_first_round(self) -> None:
        await self.check_forced("web_search")

    async def test_limit_of_calls_counts_calls_of_code(self) -> None:
        answer = self.record(type(self).answer("Enough."), "limit of tool calls")
        lines = [self.use("code_interpreter"), answer]
        async with self.serving(*lines) as client:
            made = await self.made(client, tools=[CODE_TOOL], max_tool_calls=1, include=INCLUDES)
        self.assertEqual([one["type"] for one in made["output"]], ["code_interpreter_call", "message"])

    async def test_each_tool_works_over_a_websocket(self) -> None:
        lines = [line for kind in USES for line in (self.use(kind), self.conclude(kind))]
        async with self.serving(*lines), self.socket() as socket:
            made = [await socket.create_response(tools=self.declarations) for _ in USES]
        item_states = [[(item["type"], item["status"]) for item in one["output"]] for one in made]
        self.assertEqual(item_states, [[(f"{kind}_call", "completed"), ("message", "completed")] for kind in USES])

    async def test_unstored_results_stay_in_the_chain_of_a_websocket(self) -> None:
        lines = [line for kind in USES for line in (self.use(kind), self.conclude(kind), self.conclude(kind, "Again."))]
        async with self.serving(*lines), self.socket() as socket:
            for _ in USES:
                first = await socket.create_response(tools=self.declarations, store=False)
                second = await socket.create_response(
                    "More", tools=self.declarations, store=False, previous_response_id=first["id"]
                )
                self.assertEqual(second["output"][0]["content"][0]["text"], "Again.")

    async def test_unstored_results_that_are_sent_back_reach_the_model(self) -> None:
        lines = [line for kind in USES for line in (self.use(kind), self.conclude(kind), self.conclude(kind, "Again."))]
        async with self.serving(*lines) as client:
            for _ in USES:
                first = await self.made(client, tools=self.declarations, store=False, include=INCLUDES)
                back = [*first["output"], {"role": "user", "content": "More"}]
                second = await self.made(client, tools=self.declarations, store=False, input=back)
                self.assertEqual(second["output"][0]["content"][0]["text"], "Again.")

    async def test_unstored_results_without_the_include_do_not_reach_the_model(self) -> None:
        line = self.record(type(self).answer("Again."), '{"status": "completed"}')
        async with self.serving(self.use("web_search"), self.conclude("web_search"), line) as client:
            first = await self.made(client, tools=[WEB_TOOL], store=False)
            back = [*first["output"], {"role": "user", "content": "More"}]
            await self.made(client, tools=[WEB_TOOL], store=False, input=back)
            prompt = self.dialect.token_text(list(self.engine.requests[-1].prompt))
        self.assertNotIn(USES["web_search"][2], prompt)


@pytest.mark.slow
class HarmonyServerToolsTest(HarmonyTexts, ServerToolsTest):
    __test__ = True


@pytest.mark.slow
class ChatServerToolsTest(ChatTexts, ServerToolsTest):
    __test__ = True
