"""Properties of a response: finish reason and parameters."""

from __future__ import annotations

import ast
import html
import inspect
import json
import re
from typing import Any

import orjson
from anthropic import Anthropic
from openai import OpenAI

from responses_app.api_formats.client_body import dump_client_body
from responses_app.models import Conversation, Direction, StoredRequest
from responses_app.runs.create_request import CreateRequest
from responses_app.web.response.properties import UNSET, Property, request_properties
from tests.support.store.log_records import NOW
from tests.support.web.page_case import WebCase, item, made, snapshot


class PropertiesTest(WebCase):
    def test_response_without_calls_ends_with_stop(self) -> None:
        assert request_properties(made()) == [Property("Finish reason", "stop")]

    def test_response_that_waits_for_the_client_ends_with_tool_calls(self) -> None:
        row = made()
        item(row, "fc_1", "function_call", Direction.OUTPUT, call_id="call_1", name="add", arguments="{}")
        assert request_properties(row) == [Property("Finish reason", "tool calls")]

    def test_parameters_of_the_request_are_listed_before_those_that_it_does_not_set(self) -> None:
        row = made()
        request = CreateRequest(
            project="p",
            key=None,
            model="m",
            input=(),
            temperature=0.5,
            tools=[{"type": "function", "name": "add"}, {"type": "mcp", "server_label": "demo"}, {"type": "web_search"}],
            reasoning={"effort": "low"},
        )
        StoredRequest.objects.create(response=row, create_request=request.dump(), prompt_tokens=b"")
        properties = request_properties(row)
        assert [tuple(one) for one in properties if one.is_set] == [
            ("Finish reason", "stop", True),
            ("Tools", "add, demo, web_search", True),
            ("Temperature", "0.5", True),
            ("Reasoning effort", "low", True),
            ("Stream", "no", True),
            ("Background", "no", True),
            ("Store", "yes", True),
        ]
        unset = [one.label for one in properties if not one.is_set]
        assert len(unset) == len(UNSET) - 3
        assert ("Max output tokens", "no limit", False) in properties
        assert "Temperature" not in unset

    def test_properties_of_another_format_lack_what_its_translation_adds(self) -> None:
        for api_format, labels in (("messages", []), ("", ["Include"])):
            row = made(f"resp_{api_format}", deltas=1, api_format=api_format)
            include = frozenset({"reasoning.encrypted_content"})
            request = CreateRequest("p", None, "m", (), api_format=api_format, include=include)
            StoredRequest.objects.create(response=row, create_request=request.dump(), prompt_tokens=b"")
            assert [one.label for one in request_properties(row) if one.label == "Include"] == labels

    def test_mcp_server_is_shown_with_the_number_of_its_tools(self) -> None:
        row = made()
        item(row, "mcpl_1", "mcp_list_tools", server_label="demo", tools=[{"name": "add"}, {"name": "get_weather"}])
        tools = [{"type": "mcp", "server_label": "demo"}, {"type": "mcp", "server_label": "unlisted"}]
        request = CreateRequest(project="p", key=None, model="m", input=(), tools=tools)
        StoredRequest.objects.create(response=row, create_request=request.dump(), prompt_tokens=b"")
        assert Property("Tools", "demo (2), unlisted") in request_properties(row)

    def test_request_of_another_format_is_shown_as_it_was_sent(self) -> None:
        row = made(api_format="messages")
        server = {"type": "url", "name": "files", "url": "https://files.example/mcp?key=secret-key"}
        body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "<b>"}], "mcp_servers": [server]}
        # As an earlier version has stored it.
        request = CreateRequest("p", None, "m", (), api_format="messages", client_body=orjson.dumps(body).decode())
        StoredRequest.objects.create(response=row, create_request=request.dump(), prompt_tokens=b"")
        page = self.page(f"/responses/{row.uid}/wire")
        shown = re.search(
            r'<details class="block" open><summary>Request to Messages</summary><pre[^>]*>(.*?)</pre>', page, re.DOTALL
        )
        assert shown
        hidden = {**server, "url": "https://files.example/mcp?…"}
        self.assertEqual(json.loads(html.unescape(shown[1])), {**body, "mcp_servers": [hidden]})
        self.assertIn("<summary>The same for Responses</summary>", page)
        self.assertNotIn("secret-key", page + self.page(f"/responses/{row.uid}"))
        self.assertIn('<span class="badge format">Messages</span>', self.page(f"/responses/{row.uid}/chain"))
        self.assertNotIn("Request to", self.page(f"/responses/{made('resp_plain').uid}/wire"))

    def test_curl_sends_the_request_in_the_format_of_the_client(self) -> None:
        long = "x" * 70_000
        for number, (api_format, path) in enumerate((("messages", "messages"), ("chat_completions", "chat/completions"))):
            for text, expected in (("short", path), (long, "responses")):
                with self.subTest(api_format=api_format, expected=expected):
                    body = dump_client_body({"model": "m", "messages": [{"role": "user", "content": text}]})
                    row = made(f"resp_{number}_{expected[-4:]}", deltas=1, api_format=api_format)
                    request = CreateRequest("p", None, "m", (), api_format=api_format, client_body=body)
                    StoredRequest.objects.create(response=row, create_request=request.dump(), prompt_tokens=b"")
                    page = self.page(f"/responses/{row.uid}/wire")
                    self.assertRegex(page, rf"curl http://testserver/v1/{expected} ")
                    self.assertIn("&quot;content&quot;: &quot;" + text[:400], page)
                    # Also without the `max_tokens` that the package asks for.
                    self.assertIn("client.responses.create(" if text == long else "messages=[", self.python(row.uid))
                    self.assertEqual("was not kept in full" in page, text == long)

    def test_python_calls_the_package_of_the_format_with_parameters_that_its_method_has(self) -> None:
        chat: dict[str, Any] = {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "min_p": 0.1,
            "stop": ["x"],
            "seed": 1,
        }
        message = {"model": "m", "max_tokens": 5, "messages": chat["messages"], "top_k": 3, "temperature": 0.5}
        openai, anthropic = OpenAI(api_key="k"), Anthropic(api_key="k")
        for body, api_format, method, head in (
            (chat, "chat_completions", openai.chat.completions.create, "OpenAI(base_url='http://testserver/v1'"),
            (message, "messages", anthropic.messages.create, "Anthropic(base_url='http://testserver/'"),
        ):
            with self.subTest(api_format=api_format):
                row = made(f"resp_{api_format}", deltas=1, api_format=api_format)
                request = CreateRequest("p", None, "m", (), api_format=api_format, client_body=dump_client_body(body))
                StoredRequest.objects.create(response=row, create_request=request.dump(), prompt_tokens=b"")
                code = self.python(row.uid)
                self.assertIn(f"client = {head}", code)
                keywords = self.keywords(code)
                inspect.signature(method).bind(**keywords)
                self.assertEqual({**keywords.pop("extra_body"), **keywords}, body)

    def test_python_of_a_response_has_all_parameters_and_those_of_the_server_apart(self) -> None:
        row = made("resp_p", deltas=1)
        snapshot(row, [], presence_penalty=0.5)
        # Parameters that no snapshot has.
        sampling: dict[str, Any] = {
            "top_k": 3,
            "min_p": 0.1,
            "repetition_penalty": 1.1,
            "ignore_eos": True,
            "seed": 7,
            "stop": ["x"],
        }
        tools = [{"type": "mcp", "server_label": "files", "server_url": "https://files.example/mcp?key=secret-key"}]
        request = CreateRequest("p", None, "m", (), **sampling, logit_bias={"5": 1.0}, echo={"max_tool_calls": 2}, tools=tools)
        StoredRequest.objects.create(response=row, create_request=request.dump(), prompt_tokens=b"")
        keywords = self.keywords(self.python(row.uid))
        inspect.signature(OpenAI(api_key="k").responses.create).bind(**keywords)
        self.assertEqual(keywords["extra_body"], {"presence_penalty": 0.5, **sampling, "logit_bias": {"5": 1.0}})
        self.assertEqual(keywords["max_tool_calls"], 2)
        self.assertEqual(keywords["tools"], [{**tools[0], "server_url": "https://files.example/mcp?…"}])

    def python(self, uid: str) -> str:
        match = re.search(r'<pre id="python" data-code="python">(.*?)</pre>', self.page(f"/responses/{uid}/wire"), re.DOTALL)
        assert match
        return html.unescape(match[1])

    @staticmethod
    def keywords(code: str) -> dict[str, Any]:
        """Return the arguments of the call in `code`."""
        call = ast.parse(code).body[-2]
        assert isinstance(call, ast.Assign)
        assert isinstance(call.value, ast.Call)
        return {one.arg or "": ast.literal_eval(one.value) for one in call.value.keywords}

    def test_long_counts_of_tokens_have_separators(self) -> None:
        row = made(input_tokens=32768, cached_tokens=20480)
        for path, counts in ((f"/responses/{row.uid}", ("32,768 in", "20,480")), ("/responses", (">32,768 (20,480)<",))):
            page = self.page(path)
            for count in counts:
                with self.subTest(path=path, count=count):
                    self.assertIn(count, page)

    def test_a_page_has_the_question_as_title_above_results_of_tools(self) -> None:
        first = made("resp_1", deltas=1)
        row = made("resp_2", deltas=1, history=list(first.items.values_list("pk", flat=True)))
        row.items.all().delete()
        item(row, "fco_1", "function_call_output", Direction.INPUT, call_id="call_1", output='{"sky": "clear"}')
        for view in ("", "/rerun"):
            page = self.page(f"/responses/resp_2{view}")
            self.assertRegex(page, r"<title>[^<]*Hi from resp_1")
        row.history = []
        row.save()
        self.assertRegex(self.page("/responses/resp_2"), r"<title>[^<]*sky")

    def test_the_turn_before_in_a_conversation_is_the_previous_response(self) -> None:
        conversation = Conversation.objects.create(uid="conv_1", project="p", created_at=NOW)
        for number in range(1, 4):
            made(f"resp_{number}", deltas=1, conversation=conversation)
        link = r'Previous response</dt><dd><a class="mono" href="/responses/(resp_\d)"'
        self.assertEqual(re.findall(link, self.page("/responses/resp_3")), ["resp_2"])
        self.assertEqual(re.findall(link, self.page("/responses/resp_1")), [])
