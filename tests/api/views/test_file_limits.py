"""Limits of files and containers: the same sentences on all routes, and nothing stored."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import override_settings
from django.utils import timezone

from responses_app.models import Container, ContainerFile, File, FilePurpose
from responses_app.store.files import storage
from responses_app.validation.base import NUL_REFUSED
from tests.support.api.case import HELLO, ApiCase, record_text
from tests.support.store.file_storage import file_storage_settings

FULL_DISK = {"RESPONSES_MIN_FREE_MIB": 1024 * 1024 * 1024}
NO_BYTES = {"RESPONSES_FILES_MIB_PER_PROJECT": 0}
NO_FILES = {"RESPONSES_FILES_PER_PROJECT": 0}
NO_CONTAINERS = {"RESPONSES_CONTAINERS_PER_PROJECT": 1}


class FileLimitsTest(ApiCase):
    """A container and an uploaded file."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(override_settings(**file_storage_settings(self.folder), RESPONSES_SANDBOX_URL=""))
        now, project = timezone.now(), self.key.project
        Container.objects.create(uid="cntr_1", project=project, name="work", created_at=now, last_active_at=now)
        self.upload = File.objects.create(
            uid="file-1",
            project=project,
            filename="é" * 200 + ".csv",
            purpose=FilePurpose.USER_DATA,
            bytes=4,
            created_at=now,
            storage_name="file-1",
        )

    async def refusals(self, paths: tuple[str, ...], **limits: int) -> list[tuple[int, dict[str, Any], Any]]:
        """Send a form with a file to `paths`. Return status, error object and `x-should-retry` of each."""
        errors = []
        with override_settings(**limits):
            async with self.serving() as client:
                for path in paths:
                    form = {"file": SimpleUploadedFile("a.txt", b"Oslo")}
                    purpose = {"purpose": "user_data"} if path == "/v1/files" else {}
                    answer = await client.post(path, {**form, **purpose})
                    errors.append(
                        (answer.status_code, orjson.loads(answer.content)["error"], answer.headers.get("x-should-retry"))
                    )
        return errors

    async def test_all_routes_refuse_a_file_with_the_same_sentence(self) -> None:
        routes = ("/v1/files", "/v1/containers/cntr_1/files")
        # The upload has no bytes, so the folder would be taken for one whose disk is not mounted.
        (self.folder / "files").mkdir()
        (self.folder / "files" / storage.MARKER).touch()
        for limits, status, code, words in (
            (NO_BYTES, 400, "file_quota_exceeded", "may have 0 MiB together"),
            (NO_FILES, 400, "file_quota_exceeded", "its limit of files (0)."),
            (FULL_DISK, 507, "insufficient_storage", "The disk of the server is almost full"),
        ):
            with self.subTest(words):
                first, second = await self.refusals(routes, **limits)
                assert first == second
                assert (first[0], first[1]["code"], first[2]) == (status, code, "false" if status == 507 else None)
                assert words in first[1]["message"]
        assert [path.name for path in self.folder.glob("*/[!.]*")] == []

    async def test_a_storage_that_cannot_be_used_is_named_without_a_traceback(self) -> None:
        (self.folder / "files").touch()
        with self.assertLogs("responses.api", "ERROR") as log:
            first, second = await self.refusals(("/v1/files", "/v1/containers/cntr_1/files"))
        assert first == second
        assert (first[0], first[1]["code"]) == (503, "server_error")
        assert first[1]["message"] == "The storage of files does not answer. Try again in a moment."
        assert len(log.records) == 2
        for record in log.records:
            assert record.exc_info is None
            assert record.getMessage().startswith("req_")
            assert "`manage.py doctor` checks RESPONSES_FILE_STORAGE" in record.getMessage()

    async def test_responses_and_copies_go_on_while_the_disk_is_almost_full(self) -> None:
        with override_settings(**FULL_DISK, **NO_BYTES):
            async with self.serving(record_text(HELLO)) as client:
                assert (await self.made(client))["status"] == "completed"
                body = {"name": "new", "file_ids": ["file-1"]}
                answer = await client.post("/v1/containers", orjson.dumps(body), content_type="application/json")
        assert answer.status_code == 200
        file = await ContainerFile.objects.aget()
        assert (file.storage_name, file.bytes) == ("file-1", 4)

    async def test_container_beyond_the_limit_is_refused_before_anything_is_stored(self) -> None:
        with override_settings(**NO_CONTAINERS):
            async with self.serving() as client:
                body = {"name": "new", "file_ids": ["file-1"]}
                answer = await client.post("/v1/containers", orjson.dumps(body), content_type="application/json")
        error = orjson.loads(answer.content)["error"]
        assert (answer.status_code, error["type"], error["code"]) == (400, "invalid_request_error", "container_quota_exceeded")
        assert error["message"] == "This project has reached its limit of containers (1). Delete containers first."
        assert (await Container.objects.acount(), await ContainerFile.objects.acount()) == (1, 0)

    async def test_long_name_of_an_upload_is_shortened_in_the_container(self) -> None:
        async with self.serving() as client:
            body = orjson.dumps({"file_id": "file-1"})
            answer = await client.post("/v1/containers/cntr_1/files", body, content_type="application/json")
        name = orjson.loads(answer.content)["path"].removeprefix("/mnt/data/")
        assert name.startswith("é" * 100)
        assert name.endswith(".csv")
        assert len(name.encode()) <= 255

    async def test_name_of_a_container_with_nul_is_refused(self) -> None:
        async with self.serving() as client:
            answer = await client.post("/v1/containers", b'{"name": "a\\u0000b"}', content_type="application/json")
            listed = await client.get("/v1/containers?name=a%00b")
        self.refused(answer, 400, "invalid_value", "name", NUL_REFUSED)
        self.assertEqual(orjson.loads(listed.content)["data"], [])

    async def test_body_that_is_too_long_for_an_id_is_refused_as_such(self) -> None:
        path = "/v1/containers/cntr_1/files"
        async with self.serving() as client:
            answer = await client.post(path, orjson.dumps({"file_id": "x" * 70_000}), content_type="application/json")
        self.refused(answer, 413, None, None, "larger than 64 KiB; send a file as a form.")
