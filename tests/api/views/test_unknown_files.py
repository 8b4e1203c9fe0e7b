"""Ids of unknown files in requests: one answer on every route."""

from __future__ import annotations

from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.test import override_settings

from responses_app.models import Response
from tests.support.api.case import KeyedClient
from tests.support.api.vector_store_case import VectorStoreCase
from tests.support.store.vector_stores import make_file, make_store


class UnknownFileTest(VectorStoreCase):
    # No sandbox listens there: the ids are checked before.
    @override_settings(RESPONSES_SANDBOX_URL="http://127.0.0.1:1")
    async def test_every_route_answers_the_same(self) -> None:
        foreign, store = await sync_to_async(make_file)("other"), await sync_to_async(make_store)()
        async with self.serving() as client:
            created = await self._send(client, "containers", {"name": "c"})
            self.assertEqual(created.status_code, 200, created.content)
            container = orjson.loads(created.content)["id"]
            for uid in ("file-none", "../x", foreign.uid):
                for path, body, param in requests(uid, store.uid, container):
                    with self.subTest(path=path, param=param, uid=uid):
                        response = await self._send(client, path, body)
                        self.refused(response, 400, "file_not_found", param)
                        message = orjson.loads(response.content)["error"]["message"]
                        self.assertEqual(message, f"Invalid '{param}'. No such File object: {uid}")
            self.assertEqual(await Response.objects.acount(), 0)

    async def _send(self, client: KeyedClient, path: str, body: dict[str, Any]) -> Any:
        return await client.post(f"/v1/{path}", orjson.dumps(body), content_type="application/json")


def requests(uid: str, store: str, container: str) -> list[tuple[str, dict[str, Any], str]]:
    """Return path, body and the path of the id in the body."""
    file = {"role": "user", "content": [{"type": "input_file", "file_id": uid}]}
    image = {"role": "user", "content": [{"type": "input_image", "file_id": uid}]}
    code = {"type": "code_interpreter", "container": {"type": "auto", "file_ids": [uid]}}
    hi = {"model": "m", "input": "Hi"}
    return [
        ("responses", {**hi, "input": [file]}, "input[0].content[0].file_id"),
        ("responses", {**hi, "input": [file], "stream": True}, "input[0].content[0].file_id"),
        ("responses", {**hi, "input": [file], "background": True}, "input[0].content[0].file_id"),
        ("responses/input_tokens", {**hi, "input": [file]}, "input[0].content[0].file_id"),
        ("responses", {**hi, "tools": [code]}, "tools[0].container.file_ids[0]"),
        ("conversations", {"items": [file]}, "items[0].content[0].file_id"),
        ("conversations", {"items": [image]}, "items[0].content[0].file_id"),
        ("containers", {"name": "c", "file_ids": [uid]}, "file_ids[0]"),
        (f"containers/{container}/files", {"file_id": uid}, "file_id"),
        ("vector_stores", {"file_ids": [uid]}, "file_ids[0]"),
        (f"vector_stores/{store}/files", {"file_id": uid}, "file_id"),
        (f"vector_stores/{store}/file_batches", {"file_ids": [uid]}, "file_ids[0]"),
        (f"vector_stores/{store}/file_batches", {"files": [{"file_id": uid}]}, "files[0].file_id"),
    ]
