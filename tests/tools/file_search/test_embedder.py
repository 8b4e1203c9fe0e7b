"""Embeddings of a server: requests, failures, ingestion, and searches by meaning."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import TestCase, override_settings

from responses_app.models import FileChunk, VectorStore
from responses_app.server.doctor.findings import FAILED, OK
from responses_app.server.doctor.tools import check_embedder
from responses_app.store.vector_stores import jobs
from responses_app.store.vector_stores.chunker import chunk_text
from responses_app.store.vector_stores.jobs import NewChunk
from responses_app.tools.file_search import embedder
from responses_app.tools.file_search.service import StoreSearchOptions, search
from tests.support.http_server import SilentHandler, serving
from tests.support.store.vector_stores import add_file, make_store, search_in_test_thread

VOCABULARY = ("fox", "bread", "night")
# Words with the same meaning.
SYNONYMS = {"vulpine": "fox", "loaf": "bread"}


class EmbeddingsServer(ThreadingHTTPServer):
    """`requests` are the bodies; `answer` replaces the answer, with a status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.answer: tuple[int, bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(SilentHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.requests.append(body)
        server.headers.append(self.headers.get("Authorization", ""))
        data = [{"object": "embedding", "index": n, "embedding": embedding(text)} for n, text in enumerate(body["input"])]
        status, content = server.answer or (200, json.dumps({"object": "list", "data": data[::-1]}).encode())
        self.send_response(status if self.path == "/v1/embeddings" else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def embedding(text: str) -> list[float]:
    """Count the words of the vocabulary; the last number is the same for all texts."""
    words = [SYNONYMS.get(word.strip(".?").lower(), word.strip(".?").lower()) for word in text.split()]
    return [float(sum(word.startswith(one) for word in words)) for one in VOCABULARY] + [0.1]


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with serving(EmbeddingsServer()) as server:
        names = {"URL": server.url, "MODEL": "words", "KEY": "sk-embed"}
        with override_settings(**{f"RESPONSES_EMBEDDINGS_{name}": value for name, value in names.items()}):
            yield server


def test_texts_are_embedded_in_order_and_in_batches(server: EmbeddingsServer) -> None:
    texts = [f"fox {n}" if n % 2 else f"bread {n}" for n in range(embedder.BATCH + 3)]
    vectors = asyncio.run(embedder.embed(texts))
    assert [vector.index(max(vector)) for vector in vectors] == [0 if n % 2 else 1 for n in range(len(texts))]
    assert all(math.isclose(math.hypot(*vector), 1.0) for vector in vectors)
    assert [len(body["input"]) for body in server.requests] == [embedder.BATCH, 3]
    assert (server.requests[0]["model"], server.headers[0]) == ("words", "Bearer sk-embed")


def test_no_proxy_of_the_environment_is_used(server: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("ALL_PROXY", "socks5://127.0.0.1:1"),
        ("HTTP_PROXY", "http://127.0.0.1:1"),
        ("NO_PROXY", "none.example"),
    ):
        monkeypatch.setenv(name, value)
    assert len(asyncio.run(embedder.embed(["fox"]))) == len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        (500, b"{}"),
        (200, b"not json"),
        (200, b"{}"),
        (200, b'{"data": []}'),
        (200, b'{"data": [{"index": 0, "embedding": []}]}'),
        (200, b'{"data": [{"index": 0, "embedding": ["a"]}]}'),
        (200, b'{"data": [{"index": 0, "embedding": [NaN]}]}'),
        (200, b'{"data": [{"index": 0, "embedding": null}]}'),
        (200, b'{"data": [{"index": 0, "embedding": [1' + b"0" * 400 + b"]}]}"),
        (200, b"[1]"),
    ],
    ids=str,
)
def test_wrong_answers_fail(server: EmbeddingsServer, answer: tuple[int, bytes]) -> None:
    server.answer = answer
    with pytest.raises(embedder.EmbeddingFailed):
        asyncio.run(embedder.embed(["fox"]))


@pytest.mark.parametrize(
    ("status", "setting", "is_outage"),
    [
        (401, "RESPONSES_EMBEDDINGS_KEY", True),
        (404, "RESPONSES_EMBEDDINGS_MODEL", True),
        (307, "RESPONSES_EMBEDDINGS_URL", True),
        (400, "max_chunk_size_tokens", False),
        (500, "", False),
        (503, "", True),
    ],
)
def test_refusal_names_status_and_setting(server: EmbeddingsServer, status: int, setting: str, is_outage: bool) -> None:
    server.answer = (status, b"{}")
    with pytest.raises(embedder.EmbeddingFailed, match=f"HTTP status {status}.*{setting}") as failed:
        asyncio.run(embedder.embed(["fox"]))
    assert failed.value.is_outage == is_outage
    ((checked, message),) = check_embedder()
    assert (checked, str(failed.value) in message) == (FAILED, True)


def test_server_that_cannot_be_reached_is_an_outage() -> None:
    names = {"RESPONSES_EMBEDDINGS_URL": "http://127.0.0.1:1/v1", "RESPONSES_EMBEDDINGS_MODEL": "words"}
    with override_settings(**names), pytest.raises(embedder.EmbeddingFailed) as failed:
        asyncio.run(embedder.embed(["fox"]))
    assert failed.value.is_outage


def test_doctor_names_the_length_of_an_embedding(server: EmbeddingsServer) -> None:
    del server
    assert list(check_embedder()) == [(OK, f"The embeddings server returns {len(VOCABULARY) + 1} numbers for a text.")]


@pytest.mark.usefixtures("class_server")
class EmbeddedSearchTest(TestCase):
    server: EmbeddingsServer
    store: VectorStore

    @pytest.fixture(autouse=True)
    def class_server(self, server: EmbeddingsServer) -> None:
        type(self).server = server

    def setUp(self) -> None:
        self.enterContext(search_in_test_thread())
        self.store = make_store()

    async def add(self, text: str, filename: str) -> None:
        await sync_to_async(add_file)(self.store, filename)
        job = await sync_to_async(jobs.claim_next)()
        assert job is not None
        (chunk,) = chunk_text(text)
        (vector,) = await embedder.embed([text])
        await sync_to_async(jobs.complete)(job, [NewChunk(chunk, vector)], settings.RESPONSES_EMBEDDINGS_MODEL)

    async def test_search_finds_synonyms(self) -> None:
        await self.add("Fox at work.", "foxes.txt")
        await self.add("Bread is sold.", "bread.txt")
        self.assertEqual(len((await FileChunk.objects.afirst() or FileChunk()).embedding or []), 4)
        results = await search([self.store], ["vulpine"], StoreSearchOptions(10))
        self.assertEqual([one.filename for one in results], ["foxes.txt", "bread.txt"])

    async def test_files_of_another_model_are_found_by_words_alone(self) -> None:
        await self.add("Fox at work.", "foxes.txt")
        with override_settings(RESPONSES_EMBEDDINGS_MODEL="other words"):
            self.assertEqual(await search([self.store], ["vulpine"], StoreSearchOptions(10)), [])
            (result,) = await search([self.store], ["fox"], StoreSearchOptions(10))
            self.assertEqual(result.filename, "foxes.txt")
            await self.add("Bread is sold.", "bread.txt")
            (result,) = await search([self.store], ["loaf"], StoreSearchOptions(10))
            self.assertEqual(result.filename, "bread.txt")

    async def test_search_without_the_server_is_by_words(self) -> None:
        await self.add("Fox at work.", "foxes.txt")
        await self.add("Bread is sold.", "bread.txt")
        self.server.answer = (503, b"")
        results = await search([self.store], ["bread"], StoreSearchOptions(10))
        self.assertEqual([one.filename for one in results], ["bread.txt"])
