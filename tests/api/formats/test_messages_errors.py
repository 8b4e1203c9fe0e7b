"""Errors of POST /v1/messages, in the words and with the paths of the format."""

from __future__ import annotations

from typing import Any

import orjson

from tests.support.api_formats.messages_case import HI, PATH, MessagesCase, shown

SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
WRONG = {"type": "image", "source": {"type": "url", "url": "ftp://x"}}
BUDGET = {"type": "tokens", "total": 50_000}
DOCUMENT = {"type": "document", "source": {"type": "text", "data": "x"}}


def asked(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Return a body whose only message has the blocks."""
    return {"messages": [{"role": "user", "content": blocks}]}


def source(kind: str, media_type: str, data: str = "aGk=") -> dict[str, Any]:
    """Return a body with an image or a document in base64."""
    return asked({"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}})


def ran(name: str, arguments: dict[str, Any], content: Any = None, other: str = "") -> dict[str, Any]:
    """Return a body with a call of a tool that a server has run, and its result, or one of an `other` tool."""
    server = {"type": "mcp_tool_use", "server_name": "s"} if name == "mcp" else {"type": "server_tool_use"}
    call = {**server, "id": "a", "name": name, "input": arguments}
    result = {"type": f"{other or name}_tool_result", "tool_use_id": "a", "content": content}
    return {"messages": [{"role": "assistant", "content": [call, result]}]}


def edited(kind: str, **fields: Any) -> dict[str, Any]:
    """Return `context_management` with an edit."""
    return {"context_management": {"edits": [{"type": kind, **fields}]}}


class MessagesErrorsTest(MessagesCase):
    """Errors of a server of a scripted model in the harmony format."""

    async def test_an_unknown_model_is_404(self) -> None:
        """Claude Code takes its other model at once for this, and sends the request again for other errors."""
        async with self.serving() as client:
            for path in (PATH, f"{PATH}/count_tokens"):
                answer = await self.send(client, path, model="x")
                self.assertEqual(answer.status_code, 404, answer.content)
                error = orjson.loads(answer.content)["error"]
                self.assertEqual(error["type"], "not_found_error")
                self.assertIn("The requested model 'x' does not exist.", error["message"])

    async def test_tools_of_anthropic_that_are_not_here_are_refused_with_the_reason(self) -> None:
        for kind, reason in (
            ("web_fetch_20250910", "a part of its web search alone"),
            ("advisor_20260301", "no other model advises it"),
            ("computer_toolset_20260801", "the single tool 'computer_20251124'"),
            ("browser_toolset_20260801", "declare each with its 'input_schema'"),
        ):
            async with self.serving() as client:
                answer = await self.send(client, tools=[{"type": kind}])
            self.assertEqual(answer.status_code, 400)
            message = orjson.loads(answer.content)["error"]["message"]
            self.assertTrue(message.startswith(f"tools[0].type: Unsupported value: '{kind}': "), message)
            self.assertIn(reason, message)

    async def test_the_anthropic_package_continues_without_threads(self) -> None:
        async with self.serving() as client:
            error = orjson.loads((await self.send(client, thread={"type": "create"})).content)["error"]
            self.assertEqual(error["details"], {"error_code": "thread_unsupported_request", "unsupported": ["thread"]})

    async def test_answer_that_has_begun_is_refused_and_counted(self) -> None:
        """Clients join the text that they have begun with the answer, which would be a new one."""
        for content in ("{", [{"type": "text", "text": "{"}]):
            messages = [*HI, {"role": "assistant", "content": content}]
            async with self.serving() as client:
                refused = await self.send(client, messages=messages)
                counted = await self.send(client, f"{PATH}/count_tokens", messages=messages)
            self.assertEqual((refused.status_code, counted.status_code), (400, 200), refused.content)
            message = orjson.loads(refused.content)["error"]["message"]
            self.assertTrue(message.startswith("messages[1]: This model does not support assistant message prefill."), message)

    async def test_errors_have_the_form_of_the_api_and_name_paths_of_the_request(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"max_tokens": None}, "max_tokens"),
            ({"messages": []}, "messages"),
            ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
            ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0].type"),
            ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}]}, "media_type"),
            (
                {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]},
                "messages[0].content[0].tool_use_id",
            ),
            # The path counts blocks of the request, some of which are no part of the message, and some several.
            (shown({"type": "tool_result", "tool_use_id": "a"}, WRONG), "'messages[1].content[1].source'"),
            (
                shown({"type": "tool_result", "tool_use_id": "a", "content": [WRONG]}),
                "'messages[1].content[0].content[0].source'",
            ),
            (asked({"type": "text", "text": ""}, {**DOCUMENT, "title": "A"}, WRONG), "'messages[0].content[2].source'"),
            (asked({**DOCUMENT, "source": {"type": "content", "content": [WRONG]}}), "content[0].source.content[0].source'"),
            (asked({**DOCUMENT, "source": {"type": "text", "data": "x", "url": "https://x"}}), "content[0].source.url'"),
            (ran("web_search", {}, [], "code_execution"), "'messages[0].content[1].tool_use_id'"),
            (ran("web_search", {"query": 5}), "messages[0].content[0].input.query"),
            (ran("web_search", {}, 5), "messages[0].content[1].content"),
            (ran("web_search", {}, [{"url": 5}]), "messages[0].content[1].content[0].url"),
            (ran("code_execution", {"code": 5}), "messages[0].content[0].input.code"),
            (ran("code_execution", {}, {"stdout": 5}), "messages[0].content[1].content.stdout"),
            (ran("mcp", {}, 5), "messages[0].content[1].content"),
            (ran("mcp", {}, [5]), "messages[0].content[1].content[0]"),
            ({"mcp_servers": [{"type": "url", "name": "a", "url": "http://x"}]}, "'mcp_servers[0].url'"),
            ({"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}, "tools[0].type"),
            ({"thinking": {"type": "disabled", "budget_tokens": 2048}}, "thinking.budget_tokens"),
            ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
            ({"tool_choice": {"type": "auto", "name": "x"}}, "tool_choice.name"),
            ({"top_k": -1}, "top_k"),
            ({"prefill": "x"}, "prefill"),
            ({"tools": [SEARCH, {"type": "code_execution_20250522", "name": "code_execution"}]}, "tools[0].max_uses"),
            ({"tools": [{**SEARCH, "max_uses": 0}]}, "tools[0].max_uses"),
            ({"colour": 1}, "colour"),
        ]
        async with self.serving() as client:
            for body, path in cases:
                with self.subTest(path=path):
                    response = await self.send(client, **body)
                    self.assertEqual(response.status_code, 400, response.content)
                    error = orjson.loads(response.content)
                    self.assertEqual((error["type"], error["error"]["type"]), ("error", "invalid_request_error"))
                    self.assertIn(path, error["error"]["message"])
                    self.assertEqual(error["request_id"], response["request-id"])
            refused = await client.get(PATH)
            self.assertEqual((refused.status_code, orjson.loads(refused.content)["request_id"]), (405, refused["request-id"]))

    async def test_reasoning_of_another_server_is_refused(self) -> None:
        blocks = ({"type": "thinking", "thinking": "", "signature": "x"}, {"type": "redacted_thinking", "data": "x"})
        async with self.serving() as client:
            for block, key in zip(blocks, ("signature", "data"), strict=True):
                content = [{"type": "text", "text": "Hm."}, block]
                response = await self.send(client, messages=[{"role": "assistant", "content": content}])
                message = orjson.loads(response.content)["error"]["message"]
                self.assertTrue(message.startswith(f"messages[0].content[1].{key}: "), message)

    async def test_errors_have_the_words_of_the_format(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            (
                source("image", "image/png"),
                "Unsupported content part 'image' at 'messages[0].content[0]'",
            ),
            (
                shown({"type": "text", "text": "Well?"}),
                "Invalid 'messages[0].content[0]': `tool_use` ids were found without `tool_result` blocks after: a.",
            ),
            (source("document", "image/png"), "Expected the 'media_type' of a document (e.g. 'application/pdf'), but"),
            (source("document", ""), "Expected the 'media_type' of a document (e.g. 'application/pdf'), but"),
            (source("document", "application/pdf", "!"), "The 'data' has an invalid base64-encoded value."),
            (asked(WRONG), "Expected an https URL of an image."),
            (
                {"output_config": {"task_budget": BUDGET}},
                "not shown a budget; limit the output of each request with 'max_tokens'.",
            ),
            ({"output_config": {"effort": "max"}}, "Invalid effort parameter: output_config.effort: "),
            ({"tool_choice": {"type": "any"}}, "Tool choice 'any' must be specified with 'tools' parameter."),
        ]
        async with self.serving() as client:
            for body, words in cases:
                response = await self.send(client, **body)
                self.assertEqual(response.status_code, 400, response.content)
                self.assertIn(words, orjson.loads(response.content)["error"]["message"])

    async def test_unknown_keys_of_fields_without_an_effect_are_refused_by_path(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"diagnostics": {}}, "diagnostics"),
            (asked({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "colour": 1}}), "cache_control.colour"),
            (asked({"type": "text", "text": "x", "citations": [{"type": "y", "colour": 1}]}), "citations[0].colour"),
            (asked({**DOCUMENT, "citations": {"colour": 1}}), "content[0].citations.colour"),
            (edited("keep_all"), "context_management.edits[0].type"),
            (edited("clear_thinking_20251015", colour=1), "context_management.edits[0].colour"),
            (edited("clear_tool_uses_20250919", keep={"type": "tool_uses", "colour": 1}), "edits[0].keep.colour"),
            (ran("web_search", {}, [{"colour": 1}]), "messages[0].content[1].content[0].colour"),
            (ran("code_execution", {}, {"colour": 1}), "messages[0].content[1].content.colour"),
        ]
        async with self.serving() as client:
            for body, path in cases:
                with self.subTest(path=path):
                    response = await self.send(client, **body)
                    self.assertEqual(response.status_code, 400, response.content)
                    self.assertIn(path, orjson.loads(response.content)["error"]["message"])

    async def test_fields_that_clients_send_without_an_effect_are_accepted(self) -> None:
        location = {"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": None, "file_id": "f"}
        error = {"type": "code_execution_tool_result_error", "error_code": "unavailable"}
        page = {"type": "web_search_result", "url": "https://x.y", "title": "A", "encrypted_content": "e", "page_age": "1 day"}
        answered = {"role": "user", "content": "Go on"}
        bodies: list[dict[str, Any]] = [
            asked({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h", "scope": "global"}}),
            asked({"type": "text", "text": "x", "citations": [location]}),
            edited("clear_thinking_20251015", keep="all"),
            edited("clear_tool_uses_20250919", clear_tool_inputs=True, keep={"type": "tool_uses", "value": 3}),
            {"messages": [*ran("web_search", {"query": "x"}, [page])["messages"], answered]},
            {"messages": [*ran("code_execution", {"code": "x"}, error)["messages"], answered]},
        ]
        async with self.serving() as client:
            for body in bodies:
                with self.subTest(body=body):
                    response = await self.send(client, f"{PATH}/count_tokens", **body)
                    self.assertEqual(response.status_code, 200, response.content)
