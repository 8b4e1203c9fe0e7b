"""Compilation for a client never delays the compilation of another client, in every field that accepts a grammar."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from responses_app.models import ApiKey
from tests.support.api.case import HELLO, ApiCase, KeyedClient, record_text
from tests.support.dialects.large_grammars import ENDLESS, LARGE

pytestmark = pytest.mark.slow


def custom(definition: str, syntax: str = "lark") -> dict[str, Any]:
    return {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": syntax, "definition": definition}}


class CompileFairnessTest(ApiCase):
    async def refused_grammar(self, client: Any, path: str, body: dict[str, Any], param: str, why: str) -> None:
        answer = await client.post(path, data=body, content_type="application/json")
        error = answer.json()["error"]
        self.assertEqual((answer.status_code, error["code"], error["param"]), (400, "invalid_grammar", param))
        self.assertIn(why, error["message"])

    async def test_a_large_grammar_is_refused_wherever_it_comes_in(self) -> None:
        tool, why = custom(LARGE["terminals that double"]), "more than 2 seconds of computing time"
        space = {"type": "namespace", "name": "n", "description": "d", "tools": [tool]}
        item = {"type": "additional_tools", "role": "developer", "tools": [tool]}
        where = "tools[0].format.definition"
        async with self.serving() as client:
            for path in ("/v1/responses", "/v1/responses/input_tokens"):
                await self.refused_grammar(client, path, {"model": "m", "input": "x", "tools": [tool]}, where, why)
                await self.refused_grammar(
                    client, path, {"model": "m", "input": "x", "tools": [space]}, f"tools[0].{where}", why
                )
                await self.refused_grammar(client, path, {"model": "m", "input": [item]}, f"input[0].{where}", why)
            await self.refused_grammar(client, "/v1/conversations", {"items": [item]}, f"items[0].{where}", why)

    @pytest.mark.slow
    async def test_another_project_is_answered_while_a_grammar_is_compiled(self) -> None:
        _, secret = await sync_to_async(ApiKey.make)("other")
        body = {"model": "m", "input": "x"}
        async with self.serving(*(record_text(HELLO) for _ in range(3))) as client:
            attacks = [
                asyncio.create_task(
                    client.post(
                        "/v1/responses", data={**body, "tools": [custom(f"// {n}\n{ENDLESS}")]}, content_type="application/json"
                    )
                )
                for n in range(4)
            ]
            other = KeyedClient(secret)
            for tools in ([], [custom('start: "a"')], [custom("a+", "regex")]):
                with self.subTest(tools=tools):
                    answer = await other.post("/v1/responses", data={**body, "tools": tools}, content_type="application/json")
                    self.assertEqual(answer.status_code, 200, answer.content)
            self.assertFalse(all(one.done() for one in attacks), "the others had to wait for all of it")
            for one in attacks:
                answer = await one
                self.assertEqual((answer.status_code, answer.json()["error"]["code"]), (400, "invalid_grammar"))
