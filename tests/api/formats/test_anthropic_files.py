"""The anthropic client against a server: files, and documents that name them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any

import openai
import pytest

from tests.support.server.serve_command import Server

TEXT = b"Foxes hunt at night. They live in dens.\n"


@pytest.fixture
def client(shared: Server) -> Iterator[Any]:
    with import_module("anthropic").Anthropic(base_url=shared.url, api_key=shared.key, max_retries=0) as client:
        yield client


def test_uploaded_file_is_a_document(client: Any) -> None:
    file = client.beta.files.upload(file=("foxes.csv", TEXT, "text/csv"))
    shown = (file.type, file.filename, file.mime_type, file.size_bytes, file.downloadable, file.expires_at)
    assert shown == ("file", "foxes.csv", "text/csv", len(TEXT), True, None)
    assert client.beta.files.retrieve_metadata(file.id) == file
    assert client.beta.files.download(file.id).read() == TEXT
    source = {"type": "file", "file_id": file.id}
    blocks: list[Any] = [{"type": "text", "text": "Where?"}, {"type": "document", "source": source}]
    counts = [
        client.beta.messages.count_tokens(model="tape", messages=[{"role": "user", "content": content}]).input_tokens
        for content in (blocks[:1], blocks)
    ]
    assert counts[1] > counts[0] + 10
    deleted = client.beta.files.delete(file.id)
    assert (deleted.id, deleted.type) == (file.id, "file_deleted")
    with pytest.raises(import_module("anthropic").NotFoundError):
        client.beta.files.retrieve_metadata(file.id)


def test_files_have_pages_the_newest_first(client: Any, shared: Server) -> None:
    made = [client.beta.files.upload(file=(f"{name}.txt", TEXT)).id for name in "abc"]
    newest = list(reversed(made))
    pages = client.beta.files.list(limit=1)
    assert [file.id for file, _ in zip(pages, made, strict=False)] == newest
    for extra, ids in (
        ({"after_id": made[2], "limit": 2}, newest[1:]),
        ({"before_id": made[0], "limit": 1}, [made[1]]),
    ):
        page = client.beta.files.list(extra_query=extra)
        assert [file.id for file in page.data] == ids
    for extra in ({"page": "page_x"}, {"after_id": "x", "before_id": "x"}, {"ids": "x"}, {"limit": 0}):
        with pytest.raises(import_module("anthropic").APIStatusError, match=next(iter(extra))):
            client.beta.files.list(extra_query=extra)
    with openai.OpenAI(api_key=shared.key, base_url=f"{shared.url}/v1") as of_openai_client:
        of_openai = of_openai_client.files.retrieve(made[0])
    assert (of_openai.object, of_openai.purpose) == ("file", "user_data")


def test_file_may_expire(client: Any) -> None:
    file = client.beta.files.upload(file=("a.bin2", TEXT), expires_in_seconds=3600)
    assert (file.expires_at - file.created_at, file.mime_type) == (timedelta(hours=1), "application/octet-stream")
    with pytest.raises(import_module("anthropic").BadRequestError, match="Invalid 'expires_in_seconds': expected an integer"):
        client.beta.files.upload(file=("a.txt", TEXT), expires_in_seconds=1)
