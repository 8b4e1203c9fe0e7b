"""Approvals of MCP calls: given once, for a server of the request, by the project that has the request."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import override_settings

from responses_app.models import ApiKey, Approval, Event, Response
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.ids import new_id
from responses_app.runs.server_tools import approval_address
from responses_app.runs.server_tools.executors import server_tools
from responses_app.store.content import approvals
from tests.support.api.case import HELLO, KeyedClient, record_text
from tests.support.api.mcp_case import McpCase
from tests.support.runs.server_tools import START, answer
from tests.support.store.stored_events import row_frames

DELETE = '<|channel|>commentary to=functions.files__delete <|constrain|>json<|message|>{"path":"a.txt"}<|call|>'
DELETE_TWICE = DELETE.replace("<|call|>", "<|end|>") + START + DELETE.replace("a.txt", "b.txt")
REQUEST = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "files",
    "name": "delete",
    "arguments": '{"path":"a"}',
}
HELLO_USER = {"role": "user", "content": "Hello"}
LISTING = {
    "type": "mcp_list_tools",
    "id": "mcpl_1",
    "server_label": "files",
    "tools": [{"name": "delete", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}],
}


def answer_to(uid: str, *, approve: bool = True) -> dict[str, Any]:
    return {"type": "mcp_approval_response", "approval_request_id": uid, "approve": approve}


class UsedApprovalsTest(McpCase):
    async def test_approved_call_is_made_and_the_approval_is_used(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            first, request = await self.request_of(client)
            body: dict[str, Any] = {
                "previous_response_id": first["id"],
                "input": [answer_to(request["id"])],
                "tools": [self.tool],
            }
            second = await self.made(client, **body)
            self.assertEqual(self.calls(second), [(request["id"], "deleted a.txt")])
            row = await Approval.objects.aget()
            self.assertEqual((row.project, row.request_uid, row.response_uid), ("test", request["id"], second["id"]))
            text = f"The approval request {request['id']} was already answered."
            self.refused(await self.post(client, **body), 400, None, "input", text)
            later = {**body, "previous_response_id": second["id"]}
            self.refused(await self.post(client, **later), 400, None, "input", text)

    async def test_time_to_the_first_token_begins_behind_the_approved_call(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            first, request = await self.request_of(client)
            approved = [answer_to(request["id"])]
            made = await self.made(client, previous_response_id=first["id"], input=approved, tools=[self.tool])
        row = await Response.objects.aget(uid=made["id"])
        rows = [event async for event in Event.objects.filter(response=row).order_by("number")]
        frames = [frame for event in rows for frame in row_frames(event)]
        times = {frame.type: frame.ms for frame in reversed(frames)}
        assert row.time_to_first_token_ms is not None
        longest_ms = times["response.output_text.delta"] - times["response.mcp_call.completed"]
        self.assertLessEqual(row.time_to_first_token_ms, longest_ms)

    async def test_approval_stays_used_after_its_response_was_deleted(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            first, request = await self.request_of(client)
            body: dict[str, Any] = {
                "previous_response_id": first["id"],
                "input": [answer_to(request["id"])],
                "tools": [self.tool],
            }
            second = await self.made(client, **body)
            self.assertEqual((await client.delete(f"/v1/responses/{second['id']}")).status_code, 200)
            self.refused(await self.post(client, **body), 400, None, "input", "was already answered")

    async def test_stateless_request_brings_the_approval_request_along(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            body: dict[str, Any] = {"input": [LISTING, REQUEST, answer_to("mcpr_1")], "tools": [self.tool], "store": False}
            made = await self.made(client, **body)
            self.assertEqual(self.calls(made), [("mcpr_1", "deleted a")])
            self.refused(
                await self.post(client, **body), 400, None, "input", "The approval request mcpr_1 was already answered."
            )

    async def test_two_requests_are_answered_together(self) -> None:
        async with self.serving(record_text(DELETE_TWICE), record_text(HELLO)) as client:
            first, _ = await self.request_of(client)
            uids = [item["id"] for item in first["output"] if item["type"] == "mcp_approval_request"]
            answers = [answer_to(uids[0]), answer_to(uids[1], approve=False)]
            second = await self.made(client, previous_response_id=first["id"], input=answers, tools=[self.tool])
            self.assertEqual(self.calls(second), [(uids[0], "deleted a.txt")])

    async def test_denied_request_cannot_be_approved_later(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            first, request = await self.request_of(client)
            denial = [answer_to(request["id"], approve=False)]
            second = await self.made(client, previous_response_id=first["id"], input=denial, tools=[self.tool])
            self.assertEqual(self.calls(second), [])
            body: dict[str, Any] = {
                "previous_response_id": second["id"],
                "input": [answer_to(request["id"])],
                "tools": [self.tool],
            }
            self.refused(await self.post(client, **body), 400, None, "input", "was already answered")

    async def test_denial_is_used_once(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            first, request = await self.request_of(client)
            body: dict[str, Any] = {"previous_response_id": first["id"], "tools": [self.tool]}
            denied = await self.made(client, input=[answer_to(request["id"], approve=False)], **body)
            row = await Approval.objects.aget()
            self.assertEqual((row.request_uid, row.response_uid), (request["id"], denied["id"]))
            text = f"The approval request {request['id']} was already answered."
            for approve in (True, False):
                with self.subTest(approve=approve):
                    second = await self.post(client, input=[answer_to(request["id"], approve=approve)], **body)
                    self.refused(second, 400, None, "input", text)

    async def test_used_approval_cannot_be_denied(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            first, request = await self.request_of(client)
            body: dict[str, Any] = {"previous_response_id": first["id"], "tools": [self.tool]}
            await self.made(client, input=[answer_to(request["id"])], **body)
            second = await self.post(client, input=[answer_to(request["id"], approve=False)], **body)
            self.refused(second, 400, None, "input", "was already answered")

    async def test_denial_in_the_history_of_a_stateless_client_is_accepted_again(self) -> None:
        history = [HELLO_USER, LISTING, REQUEST, answer_to("mcpr_1", approve=False)]
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            body: dict[str, Any] = {"tools": [self.tool], "store": False}
            made = await self.made(client, input=history, **body)
            again = await self.made(client, input=[*history, *made["output"], HELLO_USER], **body)
            self.assertEqual(again["status"], "completed")

    async def test_two_denials_at_once_are_used_once(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            first, request = await self.request_of(client)
            body: dict[str, Any] = {"previous_response_id": first["id"], "tools": [self.tool]}
            answers = [self.post(client, input=[answer_to(request["id"], approve=False)], **body) for _ in range(2)]
            statuses = sorted(response.status_code for response in await asyncio.gather(*answers))
            self.assertEqual(statuses, [200, 400])

    async def test_approval_in_a_conversation_is_found(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            thread = orjson.loads((await client.post("/v1/conversations", b"{}", content_type="application/json")).content)[
                "id"
            ]
            _, request = await self.request_of(client, conversation=thread)
            made = await self.made(client, conversation=thread, input=[answer_to(request["id"])], tools=[self.tool])
            self.assertEqual(self.calls(made), [(request["id"], "deleted a.txt")])


class LostListingTest(McpCase):
    """Approved calls whose context has no listing of the server: the server is listed again, and the call is made."""

    async def test_reference_to_the_approval_request_suffices(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            _, request = await self.request_of(client)
            items = [HELLO_USER, {"type": "item_reference", "id": request["id"]}, answer_to(request["id"])]
            made = await self.made(client, input=items, tools=[self.tool])
            self.assertEqual([item["type"] for item in made["output"]], ["mcp_list_tools", "mcp_call", "message"])
            self.assertEqual(self.calls(made), [(request["id"], "deleted a.txt")])

    async def test_tool_outside_of_allowed_tools_is_not_called(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            tool = {**self.tool, "allowed_tools": ["add"]}
            made = await self.made(client, input=[REQUEST, answer_to("mcpr_1")], tools=[tool])
            self.assertEqual(self.calls(made), [("mcpr_1", None)])
            self.assertEqual(await Approval.objects.acount(), 0)

    async def test_approval_request_before_a_compaction_can_be_answered(self) -> None:
        lines = [record_text(DELETE), record_text(answer("A summary.")), record_text(HELLO)]
        async with self.serving(*lines) as client:
            management = [{"type": "compaction", "compact_threshold": 1000}]
            text = "word " * 2000
            first = await self.made(client, input=text, tools=[self.tool], context_management=management)
            self.assertEqual([item["type"] for item in first["output"]][-2:], ["mcp_approval_request", "compaction"])
            request = first["output"][-2]
            body: dict[str, Any] = {"previous_response_id": first["id"], "tools": [self.tool]}
            made = await self.made(client, input=[answer_to(request["id"])], **body)
            self.assertEqual(self.calls(made), [(request["id"], "deleted a.txt")])

    async def test_approval_request_that_truncation_drops_can_be_answered(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            first, request = await self.request_of(client)
            filler = [{"role": "user", "content": "word " * 2000}, {"role": "assistant", "content": "word " * 2000}] * 3
            self.engine._max_model_len = 6000
            body: dict[str, Any] = {
                "previous_response_id": first["id"],
                "input": [*filler, answer_to(request["id"])],
                "tools": [self.tool],
            }
            self.refused(await self.post(client, **body), 400, "context_length_exceeded", "input")
            made = await self.made(client, **body, truncation="auto")
            self.assertEqual(self.calls(made), [(request["id"], "deleted a.txt")])


class RefusedApprovalsTest(McpCase):
    async def test_approval_of_a_server_outside_of_tools_is_refused(self) -> None:
        other = {**self.tool, "server_label": "other"}
        async with self.serving() as client:
            for tools in ([], [other]):
                with self.subTest(tools=tools):
                    response = await self.post(client, input=[REQUEST, answer_to("mcpr_1")], tools=tools)
                    self.refused(response, 400, None, "tools", "'server_label' 'files'")

    async def test_approval_without_its_request_is_refused(self) -> None:
        async with self.serving() as client:
            response = await self.post(client, input=[answer_to("mcpr_1")], tools=[self.tool])
            self.refused(response, 400, None, "input", "No approval request found with id mcpr_1.")

    async def test_two_answers_to_a_request_are_refused(self) -> None:
        async with self.serving() as client:
            for second in (True, False):
                with self.subTest(approve=second):
                    items = [REQUEST, answer_to("mcpr_1"), answer_to("mcpr_1", approve=second)]
                    response = await self.post(client, input=items, tools=[self.tool])
                    self.refused(response, 400, None, "input", "The approval request mcpr_1 was already answered.")

    @override_settings(RESPONSES_INACTIVE_TOOLS=frozenset({"mcp"}))
    async def test_inactive_tool_makes_no_approved_call(self) -> None:
        async with self.serving() as client:
            response = await self.post(client, input=[REQUEST, answer_to("mcpr_1")], tools=[self.tool])
            self.refused(response, 400, None, "tools", "'files'")

    async def test_project_without_the_request_cannot_approve(self) -> None:
        async with self.serving(record_text(DELETE)) as client:
            first, request = await self.request_of(client)
            _, secret = await sync_to_async(ApiKey.make)("other", project="other")
            stranger = KeyedClient(secret)
            items = [answer_to(request["id"])]
            response = await self.post(stranger, previous_response_id=first["id"], input=items, tools=[self.tool])
            self.refused(response, 400, "previous_response_not_found", "previous_response_id")
            reference = {"type": "item_reference", "id": request["id"]}
            response = await self.post(stranger, input=[reference, *items], tools=[self.tool])
            self.refused(response, 404, None, "input", "not found")

    async def test_used_approval_of_another_project_does_not_count(self) -> None:
        await sync_to_async(approvals.claim)("other", ["mcpr_1"], "resp_other")
        async with self.serving(record_text(HELLO)) as client:
            made = await self.made(client, input=[LISTING, REQUEST, answer_to("mcpr_1")], tools=[self.tool])
            self.assertEqual(self.calls(made), [("mcpr_1", "deleted a")])


class BoundApprovalsTest(McpCase):
    async def test_approval_is_for_the_address_of_its_request_alone(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            first, request = await self.request_of(client)
            other = {**self.tool, "server_url": f"{self.tool['server_url']}?other"}
            body: dict[str, Any] = {"previous_response_id": first["id"], "input": [answer_to(request["id"])]}
            self.refused(await self.post(client, **body, tools=[other]), 400, None, "tools", "was made for another server")
            stateless = {"store": False, "input": [HELLO_USER, request, answer_to(request["id"])], "tools": [other]}
            self.refused(await self.post(client, **stateless), 400, None, "tools", "was made for another server")
            second = await self.made(client, **body, tools=[self.tool])
            self.assertEqual(self.calls(second), [(request["id"], "deleted a.txt")])

    async def test_approval_that_was_not_used_is_not_used_for_another_address_later(self) -> None:
        async with self.serving(record_text(DELETE)) as client:
            _, request = await self.request_of(client)
            tool = {**self.tool, "server_url": f"{self.tool['server_url']}?other"}
            items = [request, {**answer_to(request["id"]), "id": "mcpr_0"}]
            executor = server_tools(CreateRequest("test", None, "m", [], tools=[tool]), "resp_1")
            assert executor is not None
            self.assertEqual([type(one).__name__ for one in executor.openings(items)], ["McpList"])
            await executor.close()

    def test_ids_without_a_hash_and_older_secret_keys_stay_usable(self) -> None:
        uid = new_id("mcpr_")
        ending = approval_address.id_ending("p", self.tool)
        self.assertTrue(approval_address.is_for_server(uid, "p", self.tool))
        self.assertFalse(approval_address.is_for_server(uid + ending, "q", self.tool))
        with override_settings(SECRET_KEY="k" * 50, SECRET_KEY_FALLBACKS=[settings.SECRET_KEY]):
            self.assertTrue(approval_address.is_for_server(uid + ending, "p", self.tool))
        with override_settings(SECRET_KEY="k" * 50, SECRET_KEY_FALLBACKS=[]):
            self.assertFalse(approval_address.is_for_server(uid + ending, "p", self.tool))
