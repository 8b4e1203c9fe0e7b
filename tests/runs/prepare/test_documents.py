"""Files in requests: texts of `input_file`, and images of `file_id`, in the prompt of the model."""

from __future__ import annotations

import hashlib
import tempfile
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.test import override_settings

from responses_app.extraction.extractor import UNAVAILABLE
from responses_app.models import File, Image
from responses_app.runs.prepare.resolve import text_block
from responses_app.store.files import files, storage
from tests.support.api.image_case import BLUE, RED, SeeingCase, answered, user
from tests.support.extraction import documents
from tests.support.store.file_storage import file_storage_settings

PDF = documents.pdf("Oslo", "Bergen")
SHOWN = text_block("cities.pdf", "Oslo\n\nBergen", is_cut=False)


def data_url(data: bytes) -> str:
    return f"data:application/pdf;base64,{b64encode(data).decode()}"


class DocumentTest(SeeingCase):
    """A model that sees, with a separate storage."""

    def setUp(self) -> None:
        super().setUp()
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(override_settings(**file_storage_settings(folder)))
        self.folder = folder

    def add(self, data: bytes, name: str = "cities.pdf", project: str | None = None, **more: Any) -> File:
        """Store an uploaded file."""
        count = File.objects.count()
        path = self.folder / "new"
        path.write_bytes(data)
        storage.save(path, f"file-{count}")
        row = File(
            uid=f"file-{count}",
            project=project or self.key.project,
            filename=name,
            purpose="user_data",
            bytes=len(data),
            created_at=datetime.now(UTC),
            storage_name=f"file-{count}",
            sha256=hashlib.sha256(data).hexdigest(),
            **more,
        )
        files.create(row)
        return row

    async def refusal(self, part: dict[str, Any], **body: Any) -> dict[str, Any]:
        """The error of a request with `part`."""
        async with self.serving() as client:
            response = await self.post(client, input=[user("Read.", part)], **body)
        self.assertEqual(response.status_code, 400, response.content)
        error: dict[str, Any] = orjson.loads(response.content)["error"]
        return error

    async def test_text_of_an_uploaded_file_is_shown_with_its_name(self) -> None:
        file = await sync_to_async(self.add)(PDF)
        async with self.serving(answered()) as client:
            made = await self.made(client, input=[user("Read.", {"type": "input_file", "file_id": file.uid})])
            self.assertIn(SHOWN, self.prompt)
            listed = orjson.loads((await client.get(f"/v1/responses/{made['id']}/input_items")).content)
        self.assertEqual(listed["data"][0]["content"][1], {"type": "input_file", "file_id": file.uid})

    async def test_text_of_file_data_is_shown(self) -> None:
        part = {"type": "input_file", "filename": "cities.pdf", "file_data": data_url(PDF)}
        async with self.serving(answered()) as client:
            await self.made(client, input=[user("Read.", part)])
            self.assertIn(SHOWN, self.prompt)

    async def test_file_in_the_output_of_a_tool_is_shown(self) -> None:
        call = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}
        part = {"type": "input_file", "filename": "cities.pdf", "file_data": data_url(PDF)}
        output = {"type": "function_call_output", "call_id": "c", "output": [part]}
        async with self.serving(answered()) as client:
            await self.made(client, input=[user("Read."), call, output])
            self.assertIn("Oslo", self.prompt)

    async def test_later_turn_reads_the_stored_text_after_the_file_is_deleted(self) -> None:
        file = await sync_to_async(self.add)(PDF)
        picture = await sync_to_async(self.add)(RED, "red.png")
        parts = ({"type": "input_file", "file_id": file.uid}, {"type": "input_image", "file_id": picture.uid})
        async with self.serving(answered(), answered()) as client:
            made = await self.made(client, input=[user("Read.", *parts)])
            self.assertEqual(self.shown, [RED])
            for row in (file, picture):
                await sync_to_async(files.delete)(row)
            await self.made(client, input="Again", previous_response_id=made["id"])
            self.assertIn(SHOWN, self.prompt)
            self.assertEqual(self.shown, [RED])
        self.assertEqual(await Image.objects.acount(), 2)

    async def test_uploaded_image_is_shown_and_kept_as_sent(self) -> None:
        picture = await sync_to_async(self.add)(BLUE, "blue.png")
        async with self.serving(answered()) as client:
            made = await self.made(client, input=[user("See.", {"type": "input_image", "file_id": picture.uid})])
            self.assertEqual(self.shown, [BLUE])
            path = f"/v1/responses/{made['id']}/input_items?include=message.input_image.image_url"
            listed = orjson.loads((await client.get(path)).content)
        self.assertEqual(listed["data"][0]["content"][1], {"type": "input_image", "detail": "auto", "file_id": picture.uid})

    async def test_input_tokens_count_the_text_of_a_file(self) -> None:
        part = {"type": "input_file", "filename": "cities.pdf", "file_data": data_url(PDF)}
        async with self.serving() as client:
            counts = []
            for parts in (("Read.",), ("Read.", part)):
                body = orjson.dumps({"model": "m", "input": [user(*parts)]})
                answer = await client.post("/v1/responses/input_tokens", body, content_type="application/json")
                counts.append(orjson.loads(answer.content)["input_tokens"])
        self.assertGreaterEqual(counts[1] - counts[0], len(SHOWN))

    async def test_file_of_another_project_is_not_found(self) -> None:
        file = await sync_to_async(self.add)(PDF, project="other")
        for part in ({"type": "input_file", "file_id": file.uid}, {"type": "input_image", "file_id": file.uid}):
            with self.subTest(part["type"]):
                error = await self.refusal(part)
                self.assertEqual((error["param"], error["code"]), ("input[0].content[1].file_id", "file_not_found"))

    async def test_expired_file_is_not_found(self) -> None:
        file = await sync_to_async(self.add)(PDF, expires_at=datetime.now(UTC) - timedelta(seconds=1))
        error = await self.refusal({"type": "input_file", "file_id": file.uid})
        self.assertEqual(error["code"], "file_not_found")

    async def test_file_that_cannot_be_read_is_refused_with_its_path(self) -> None:
        for data, code in ((b"%PDF-1.4", "invalid_file"), (RED, "unsupported_file"), (b"", "invalid_file")):
            with self.subTest(data[:8]):
                error = await self.refusal({"type": "input_file", "file_data": data_url(data)})
                self.assertEqual((error["param"], error["code"]), ("input[0].content[1].file_data", code))

    async def test_file_that_no_sandbox_reads_at_the_moment_is_503(self) -> None:
        part = {"type": "input_file", "file_data": data_url(PDF)}
        away = override_settings(RESPONSES_SANDBOX_URL=f"unix:{self.folder}/none.sock", RESPONSES_SANDBOX_READER_URL="")
        async with self.serving() as client:
            with away:
                response = await self.post(client, input=[user("Read.", part)])
        error = orjson.loads(response.content)["error"]
        self.assertEqual((response.status_code, error["message"]), (503, UNAVAILABLE))

    async def test_url_of_an_internal_host_is_refused(self) -> None:
        error = await self.refusal({"type": "input_file", "file_url": "https://127.0.0.1/a.pdf"})
        self.assertEqual((error["param"], error["code"]), ("input[0].content[1].file_url", "invalid_file"))
        self.assertIn("public internet", error["message"])
