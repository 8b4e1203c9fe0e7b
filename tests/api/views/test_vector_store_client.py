"""The openai client against a server: vector stores, their files, batches and searches, with the ingestion in the background."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import openai
import pytest
from openai.types import VectorStore

from tests.support.server.processes import named
from tests.support.server.serve_command import END_LIMIT, Server
from tests.support.waiting import wait_until

FOXES = "Foxes hunt at night. They live in dens.\n"
BREAD = "Bread is sold in the morning. The oven is hot.\n"


@pytest.fixture
def client(shared: Server) -> openai.OpenAI:
    return connect(shared)


def connect(server: Server) -> openai.OpenAI:
    return openai.OpenAI(api_key=server.key, base_url=f"{server.url}/v1", max_retries=0)


def upload(client: openai.OpenAI, name: str, text: str) -> str:
    return client.files.create(file=(name, text.encode()), purpose="assistants").id


def test_store_of_the_file_search_example(client: openai.OpenAI) -> None:
    file_id = upload(client, "foxes.txt", FOXES)
    store = client.vector_stores.create(name="animals", expires_after={"anchor": "last_active_at", "days": 1})
    added = client.vector_stores.files.create_and_poll(file_id=file_id, vector_store_id=store.id, attributes={"year": 2020})
    assert (added.status, added.last_error, added.attributes) == ("completed", None, {"year": 2020})
    assert added.usage_bytes == len(FOXES)
    (result,) = client.vector_stores.search(store.id, query="Where do foxes live?").data
    assert (result.filename, result.file_id, result.content[0].text) == ("foxes.txt", file_id, FOXES)
    assert 0 < result.score <= 1
    assert client.vector_stores.retrieve(store.id).file_counts.completed == 1
    assert client.vector_stores.delete(store.id).deleted
    assert client.files.delete(file_id).deleted
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.retrieve(store.id)


def test_every_method_of_stores(client: openai.OpenAI) -> None:
    store = client.vector_stores.create(metadata={"a": "b"})
    assert client.vector_stores.update(store.id, name="Renamed").name == "Renamed"
    assert store.id in [one.id for one in client.vector_stores.list(limit=1)]
    assert client.vector_stores.delete(store.id).object == "vector_store.deleted"


def test_every_method_of_files(client: openai.OpenAI) -> None:
    store = client.vector_stores.create()
    added = client.vector_stores.files.upload_and_poll(vector_store_id=store.id, file=("bread.txt", BREAD.encode()))
    assert added.status == "completed"
    files, file_id = client.vector_stores.files, added.id
    assert files.retrieve(file_id, vector_store_id=store.id).id == file_id
    assert files.update(file_id, vector_store_id=store.id, attributes={"n": 1}).attributes == {"n": 1}
    assert [one.id for one in files.list(store.id, filter="completed")] == [file_id]
    assert [part.text for part in files.content(file_id, vector_store_id=store.id)] == [BREAD]
    results = client.vector_stores.search(store.id, query="oven", filters={"type": "eq", "key": "n", "value": 1})
    assert [one.file_id for one in results] == [added.id]
    assert files.delete(file_id, vector_store_id=store.id).deleted
    assert list(files.list(store.id)) == []


def test_every_method_of_batches(client: openai.OpenAI) -> None:
    store = client.vector_stores.create()
    batches = client.vector_stores.file_batches
    texts = [("foxes.txt", FOXES.encode()), ("bread.txt", BREAD.encode())]
    uploaded = batches.upload_and_poll(store.id, files=texts)
    assert (uploaded.status, uploaded.file_counts.completed) == ("completed", 2)
    listed = list(batches.list_files(uploaded.id, vector_store_id=store.id))
    assert {one.status for one in listed} == {"completed"}
    again = batches.create_and_poll(store.id, file_ids=[one.id for one in listed])
    assert (again.status, again.file_counts.total) == ("completed", 2)
    assert batches.retrieve(again.id, vector_store_id=store.id) == again
    assert batches.cancel(again.id, vector_store_id=store.id).status == "completed"


def test_unreadable_file_fails_with_a_reason(client: openai.OpenAI) -> None:
    store = client.vector_stores.create()
    added = client.vector_stores.files.upload_and_poll(vector_store_id=store.id, file=("blank.txt", b" \n "))
    assert added.status == "failed"
    assert added.last_error is not None
    assert (added.last_error.code, added.last_error.message) == ("invalid_file", "The file contains no text.")


@pytest.mark.slow
def test_ingestion_survives_a_kill(tmp_path: Path, tape: str) -> None:
    first = Server(tmp_path / "data", "--engine", tape)
    second = None
    try:
        client = connect(first.ready())
        text = "".join(f"Line {n} about foxes and dens.\n" for n in range(15_000))
        files = [upload(client, f"{n}.txt", text) for n in range(4)]
        store = client.vector_stores.create(file_ids=files)
        stored: list[VectorStore] = []

        def is_one_completed() -> bool:
            stored.append(client.vector_stores.retrieve(store.id))
            return stored[-1].file_counts.completed >= 1

        wait_until(is_one_completed, limit_s=120)
        os.kill(named(first.process.pid, "responses_app.server.processes.main"), signal.SIGKILL)
        assert stored[-1].file_counts.in_progress > 0, "the server was killed in the middle"
        first.process.wait(END_LIMIT)
        second = Server(first.folder, "--engine", tape)
        client = connect(second.ready())
        wait_until(lambda: client.vector_stores.retrieve(store.id).status == "completed", limit_s=120)
        assert client.vector_stores.retrieve(store.id).file_counts.completed == len(files)
        for file_id in files:
            parts = client.vector_stores.files.content(file_id, vector_store_id=store.id)
            assert "".join(part.text or "" for part in parts) == text
    finally:
        first.end()
        if second is not None:
            second.end()
