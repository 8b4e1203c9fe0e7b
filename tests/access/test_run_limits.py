"""Limits of output tokens and of running time, by model and by key; and server tools by key."""

from __future__ import annotations

from typing import Any
from unittest import mock

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.test import override_settings

from project.model_limits import parse_limits
from responses_app.engines.replay.tape import Delay, Recording
from responses_app.models import ApiKey, Project
from responses_app.runs.models import check_limits
from responses_app.web.chat.offers import offers
from tests.support.api.case import HELLO, ApiCase, record_text
from tests.support.web.page_case import WebCase

MCP = {
    "docs": {"url": "https://docs.example/mcp", "connector_id": "connector_docs"},
    "mail": {"url": "https://mail.example/mcp"},
}


@pytest.mark.parametrize(
    ("text", "limits"), [("", {}), ("4096", {"": 4096}), ("4096 big=8192 free=0", {"": 4096, "big": 8192, "free": 0})]
)
def test_limits_have_a_number_for_all_models_and_numbers_for_single_ones(text: str, limits: dict[str, int]) -> None:
    assert parse_limits("X", text, 16) == limits


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("many", "'many' must be"),
        ("8", "at least 16"),
        ("a=1.5", "'a=1.5'"),
        ("16 17", "twice"),
        ("a=", "'a='"),
        ("9" * 20, "at most 2147483647, or 0"),
    ],
)
def test_wrong_limits_are_refused_at_the_start(text: str, problem: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=problem):
        parse_limits("X", text, 16)


def test_limits_of_a_model_that_is_not_served_are_refused_at_the_start() -> None:
    with pytest.raises(ImproperlyConfigured, match="X: 'b' is not a model that is served"):
        check_limits("X", {"": 16, "b": 16}, {})


class OutputTokensTest(ApiCase):
    """The limit of output tokens."""

    async def test_default_and_maximum_are_echoed(self) -> None:
        cases: list[tuple[dict[str, Any], int | None, int | None, int | None]] = [
            # settings, limit of the key, tokens of the request, tokens of the response
            ({}, None, None, None),
            ({}, None, 64, 64),
            ({"RESPONSES_DEFAULT_OUTPUT_TOKENS": {"": 100}}, None, None, 100),
            ({"RESPONSES_DEFAULT_OUTPUT_TOKENS": {"": 100}}, None, 200, 200),
            ({"RESPONSES_DEFAULT_OUTPUT_TOKENS": {"": 100, "m": 0}}, None, None, None),
            ({"RESPONSES_MAX_OUTPUT_TOKENS": {"": 90}}, None, None, 90),
            ({"RESPONSES_MAX_OUTPUT_TOKENS": {"": 90, "m": 300}}, None, 300, 300),
            ({"RESPONSES_DEFAULT_OUTPUT_TOKENS": {"": 100}, "RESPONSES_MAX_OUTPUT_TOKENS": {"": 90}}, 50, None, 50),
            ({}, 50, 50, 50),
        ]
        async with self.serving(*[record_text(HELLO)] * len(cases)) as client:
            for settings, of_key, requested, expected in cases:
                with self.subTest(settings=settings, of_key=of_key, requested=requested), override_settings(**settings):
                    await self.limit(max_output_tokens=of_key)
                    answer = await self.post(client, max_output_tokens=requested)
                    self.assertEqual(orjson.loads(answer.content)["max_output_tokens"], expected)

    async def test_default_of_the_key_holds_where_it_is_the_smallest(self) -> None:
        cases: list[tuple[dict[str, Any], dict[str, int | None], int | None, int]] = [
            # settings, limits of the key, tokens of the request, tokens of the response
            ({}, {"default_output_tokens": 40}, None, 40),
            ({}, {"default_output_tokens": 40}, 64, 64),
            ({}, {"default_output_tokens": 40, "max_output_tokens": 80}, None, 40),
            ({}, {"default_output_tokens": 40, "max_output_tokens": 80}, 64, 64),
            ({}, {"default_output_tokens": 90, "max_output_tokens": 80}, None, 80),
            ({"RESPONSES_DEFAULT_OUTPUT_TOKENS": {"": 30}}, {"default_output_tokens": 40}, None, 30),
            ({"RESPONSES_MAX_OUTPUT_TOKENS": {"m": 30}}, {"default_output_tokens": 40}, None, 30),
            ({"RESPONSES_DEFAULT_OUTPUT_TOKENS": {"m": 50}}, {"default_output_tokens": 40}, None, 40),
        ]
        async with self.serving(*[record_text(HELLO)] * len(cases)) as client:
            for settings, of_key, requested, expected in cases:
                with self.subTest(settings=settings, of_key=of_key, requested=requested), override_settings(**settings):
                    await self.limit(**{"default_output_tokens": None, "max_output_tokens": None, **of_key})
                    answer = await self.post(client, max_output_tokens=requested)
                    self.assertEqual(orjson.loads(answer.content)["max_output_tokens"], expected)

    async def test_more_than_the_maximum_is_refused_with_the_name_of_the_limit(self) -> None:
        async with self.serving() as client:
            with override_settings(RESPONSES_MAX_OUTPUT_TOKENS={"": 90}):
                for of_key, name in (
                    (None, "90 (RESPONSES_MAX_OUTPUT_TOKENS of this server)"),
                    (50, "50 (the limit of this API key)"),
                ):
                    await self.limit(max_output_tokens=of_key)
                    answer = await self.post(client, max_output_tokens=91)
                    self.refused(answer, 400, "integer_above_max_value", "max_output_tokens", name)

    async def test_the_parameter_is_named_as_the_client_has_sent_it(self) -> None:
        await self.limit(max_output_tokens=50)
        messages = [{"role": "user", "content": "Hi"}]
        async with self.serving() as client:
            for path, parameter in (
                ("chat/completions", "max_tokens"),
                ("chat/completions", "max_completion_tokens"),
                ("messages", "max_tokens"),
            ):
                body = orjson.dumps({"model": "m", "messages": messages, parameter: 91})
                answer = await client.post(f"/v1/{path}", body, content_type="application/json")
                error = orjson.loads(answer.content)["error"]
                self.assertEqual(answer.status_code, 400)
                self.assertIn(f"Invalid '{parameter}': integer above maximum value. Expected a value <= 50", error["message"])
                self.assertEqual(error.get("param", parameter), parameter)


class RunningTimeTest(ApiCase):
    """The limit of the running time."""

    @pytest.mark.slow
    async def test_the_response_ends_incomplete_with_the_output_so_far(self) -> None:
        endless = Recording([*record_text(HELLO).steps[:-1], Delay(600)])
        async with self.serving(endless, endless) as client:
            for limit in ("key", "setting"):
                await self.limit(max_run_seconds=1 if limit == "key" else None)
                with self.subTest(limit=limit), override_settings(RESPONSES_MAX_RUN_SECONDS={} if limit == "key" else {"m": 1}):
                    answer = await self.post(client)
                    made = orjson.loads(answer.content)
                    self.assertEqual((answer.status_code, made["status"], made["error"]), (200, "incomplete", None))
                    self.assertEqual(made["incomplete_details"]["reason"], "max_run_seconds")
                    self.assertTrue(made["output"][0]["content"][0]["text"].startswith("Hello"), made["output"])

    async def test_a_response_that_ends_in_time_is_complete(self) -> None:
        await self.limit(max_run_seconds=600)
        async with self.serving(record_text(HELLO)) as client:
            self.assertEqual(orjson.loads((await self.post(client)).content)["status"], "completed")


@override_settings(RESPONSES_MCP_SERVERS=MCP, RESPONSES_WEB_SEARCH={"backend": "folder", "url": "file:///srv"})
class ToolsTest(ApiCase):
    """The tools of the server that a key may use."""

    async def test_other_tools_are_refused_before_anything_runs(self) -> None:
        by_url = {"type": "mcp", "server_label": "docs", "server_url": "https://other.example/mcp"}
        refused: list[tuple[dict[str, Any], str]] = [
            ({"type": "web_search"}, "web_search"),
            ({"type": "web_search_preview"}, "web_search"),
            ({"type": "mcp", "server_label": "mail"}, "mcp:mail"),
            (by_url, "mcp"),
        ]
        await self.limit(allowed_tools=["mcp:docs", "file_search"])
        function = {"type": "function", "name": "f", "parameters": {}}
        async with self.serving() as client:
            for tool, name in refused:
                for path in ("/v1/responses", "/v1/responses/input_tokens"):
                    with self.subTest(tool=tool, path=path):
                        body = orjson.dumps({"model": "m", "input": "Hi", "tools": [function, tool]})
                        answer = await client.post(path, body, content_type="application/json")
                        message = f"may not use the tool '{name}'. Allowed tools: mcp:docs, file_search."
                        self.refused(answer, 403, "tool_not_allowed", "tools[1]", message)

    async def test_a_connector_is_allowed_by_the_label_of_the_operator(self) -> None:
        await self.limit(allowed_tools=["mcp:mail"])
        tool = {"type": "mcp", "server_label": "mail", "connector_id": "connector_docs"}
        async with self.serving() as client:
            self.refused(await self.post(client, tools=[tool]), 403, "tool_not_allowed", "tools[0]", "'mcp:docs'")

    async def test_tools_of_clients_are_always_allowed(self) -> None:
        await self.limit(allowed_tools=["none"])
        async with self.serving(record_text(HELLO)) as client:
            answer = await self.post(client, tools=[{"type": "function", "name": "f", "parameters": {}}])
            self.assertEqual(answer.status_code, 200, answer.content)
            answer = await self.post(client, tools=[{"type": "web_search"}])
            self.refused(answer, 403, "tool_not_allowed", "tools[0]", "It may use no tool of this server.")

    async def test_the_lists_of_the_project_hold_too(self) -> None:
        await self.limit(allowed_tools=["mcp:docs", "mcp:mail"])
        project = await Project.objects.acreate(name=self.key.project, allowed_tools=["mcp:docs", "web_search"])
        async with self.serving() as client:
            cases = {
                "The project 'test' may not use the tool 'mcp:mail'. Allowed tools: mcp:docs.": {"server_label": "mail"},
                "This key may not use the tool 'mcp'.": {"server_label": "mail", "server_url": "https://other.example/mcp"},
            }
            for message, tool in cases.items():
                answer = await self.post(client, tools=[{"type": "mcp", **tool}])
                self.refused(answer, 403, "tool_not_allowed", "tools[0]", message)
            offered = await sync_to_async(offers)("test")
            self.assertEqual([server["label"] for server in offered["servers"]], ["docs"])
            self.assertEqual([model.name for model in offered["models"]], ["m"])
            model = orjson.loads((await client.get("/v1/models/m")).content)
            self.assertEqual([server["server_label"] for server in model["mcp_servers"]], ["docs"])
            self.assertNotIn("web_search", model["tools"])
            project.allowed_tools, project.allowed_models = ["web_search"], ["other"]
            await project.asave()
            await self.limit()
            self.assertEqual(orjson.loads((await client.get("/v1/models")).content)["data"], [])
            self.assertEqual((await sync_to_async(offers)("test"))["models"], [])
            message = f"The project '{self.key.project}' may not use the model 'm'. This key may use none"
            self.refused(await self.post(client), 403, "model_not_found", "model", message)

    async def test_models_list_the_tools_of_the_key(self) -> None:
        await self.limit(allowed_tools=["mcp:docs"])
        async with self.serving() as client:
            model = orjson.loads((await client.get("/v1/models/m")).content)
            self.assertEqual([server["server_label"] for server in model["mcp_servers"]], ["docs"])
            self.assertIn("mcp", model["tools"])
            self.assertNotIn("web_search", model["tools"])


@override_settings(RESPONSES_MCP_SERVERS=MCP)
class KeyFormTest(WebCase):
    """The limits on the key page and in `manage.py createkey`."""

    def test_the_key_page_and_the_command_set_the_limits(self) -> None:
        fields = {"name": "k", "project": "p", "default_output_tokens": "32", "max_output_tokens": "64", "max_run_seconds": "9"}
        self.client.post("/keys", {**fields, "allowed_tools": ["mcp:docs"]})
        arguments = ["--default-output-tokens=32", "--max-output-tokens", "64", "--max-run-seconds", "9", "--tool", "mcp:docs"]
        call_command("createkey", "c", "--project", "p", *arguments, stdout=mock.Mock())
        for key in ApiKey.objects.all():
            self.assertEqual((key.default_output_tokens, key.max_output_tokens), (32, 64))
            self.assertEqual((key.max_run_seconds, key.allowed_tools), (9, ["mcp:docs"]))
        self.assertIn("32 output tokens by default, 64 output tokens, 9 s, tool mcp:docs", self.page("/keys"))
        key = ApiKey.objects.get(name="k")
        self.assertIn('value="mcp:docs" checked', re_spaced(self.page(f"/keys/{key.pk}")))
        answer = self.client.post(f"/keys/{key.pk}", {"name": "k", "max_output_tokens": "15", "allowed_tools": ["mcp:other"]})
        self.assertContains(answer, "greater than or equal to 16")
        self.assertContains(answer, "not one of the available choices")

    def test_the_command_names_the_tools_that_there_are(self) -> None:
        with self.assertRaisesRegex(CommandError, "must be one of .*mcp:docs, mcp:mail, none, not 'mcp:other'"):
            call_command("createkey", "c", "--tool", "mcp:other")


def re_spaced(page: str) -> str:
    """Return the page without the ids of form fields, which stand between a value and `checked`."""
    import re

    return re.sub(r' id="[^"]*"', "", page)
