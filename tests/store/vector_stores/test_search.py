"""Search in vector stores: words, filters, embeddings, and other stores."""

from __future__ import annotations

from typing import Any
from unittest import mock

import orjson
import pytest
from django.db import connection
from django.test import TestCase

from responses_app.models import VectorStore
from responses_app.store.vector_stores import search
from responses_app.store.vector_stores.search import ChunkResult, Query, search_store
from tests.support.store.vector_stores import add_text, make_store

FILLER = "The committee met on Monday and adopted the agenda. "


def files_found(store: VectorStore, *texts: str, **options: Any) -> list[str]:
    results = search_store(store, [Query(text) for text in texts], options.pop("limit", 10), **options)
    return [result.filename for result in results]


class WordSearchTest(TestCase):
    store: VectorStore

    @classmethod
    def setUpTestData(cls) -> None:
        cls.store = make_store()
        add_text(cls.store, FILLER + "Foxes hunt at night in the forest.", "foxes.txt", {"year": 2020, "kind": "animal"})
        add_text(cls.store, FILLER + "A bakery sells bread at night.", "bread.txt", {"year": 2024, "kind": "shop"})
        add_text(cls.store, FILLER * 30 + "Der Fuchs jagt. It's 100% a test\\ing 'quote'.", "odd.txt", {"year": 2024})

    def test_chunk_with_all_words_is_first(self) -> None:
        assert files_found(self.store, "Where do foxes hunt at night?")[0] == "foxes.txt"

    def test_words_are_stemmed(self) -> None:
        assert files_found(self.store, "hunting fox") == ["foxes.txt"]

    def test_stop_words_find_nothing(self) -> None:
        assert files_found(self.store, "what is the of and") == []

    def test_unknown_words_find_nothing(self) -> None:
        assert files_found(self.store, "zeppelin") == []

    def test_unknown_words_beside_known_words_find_the_known(self) -> None:
        assert files_found(self.store, "zeppelin bread") == ["bread.txt"]

    def test_several_queries_find_the_chunks_of_each(self) -> None:
        assert set(files_found(self.store, "foxes", "bread")) == {"foxes.txt", "bread.txt"}

    def test_scores_are_between_0_and_1_and_fall(self) -> None:
        results = search_store(self.store, [Query("foxes hunt at night committee")], 10)
        scores = [result.score for result in results]
        assert scores == sorted(scores, reverse=True)
        assert len(scores) == 3
        assert all(0 < score <= 1 for score in scores)

    def test_limit_cuts_the_results(self) -> None:
        assert len(files_found(self.store, "committee", limit=2)) == 2

    def test_filter_leaves_files_out(self) -> None:
        filters = {"type": "eq", "key": "year", "value": 2024}
        assert files_found(self.store, "night", filters=filters) == ["bread.txt"]

    def test_other_stores_are_not_searched(self) -> None:
        other = make_store()
        add_text(other, "Foxes in another store.", "other.txt")
        assert files_found(self.store, "foxes") == ["foxes.txt"]
        assert files_found(other, "foxes") == ["other.txt"]

    def test_result_has_text_and_attributes(self) -> None:
        (result,) = search_store(self.store, [Query("foxes")], 10)
        assert isinstance(result, ChunkResult)
        assert result.text.endswith("forest.")
        assert orjson.loads(result.attributes) == {"year": 2020, "kind": "animal"}
        assert result.file_id.startswith("file-")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "'",
        "''",
        "\\",
        "a & b | !c <-> (d:*",
        "%s %(x)s",
        "{scope}",
        "\0",
        "\ud83d\ude00",
        "'store 1'",
        "x" * 30_000,
        "a " * 15_000,
    ],
)
def test_query_is_never_syntax(text: str) -> None:
    store = make_store()
    add_text(store, "Foxes hunt it's 100% test\\ing.", "foxes.txt")
    assert search_store(store, [Query(text)], 10) is not None


@pytest.mark.django_db
@pytest.mark.parametrize("has_pgvector", [True, False])
def test_embeddings_find_chunks_without_common_words(has_pgvector: bool) -> None:
    store = make_store()
    add_text(store, "Foxes hunt.", "foxes.txt", vectors=[[1.0, 0.0, 0.0]])
    add_text(store, "Bread is sold.", "bread.txt", vectors=[[0.0, 1.0, 0.0]])
    add_text(store, "A file of before.", "old.txt")
    add_text(store, "A file of another model.", "foreign.txt", vectors=[[1.0, 0.0]])
    check = search._HAS_PGVECTOR_SQL if has_pgvector else "SELECT FALSE"
    with connection.cursor() as cursor:
        cursor.execute(search._HAS_PGVECTOR_SQL)
        assert cursor.fetchone() == (True,), "the database of the tests has pgvector"
    with mock.patch.object(search, "_HAS_PGVECTOR_SQL", check):
        results = search_store(store, [Query("loaf", [0.1, 0.9, 0.0])], 10)
        assert [result.filename for result in results] == ["bread.txt", "foxes.txt"]
        fused = search_store(store, [Query("foxes", [0.9, 0.1, 0.0])], 10)
    assert fused[0].filename == "foxes.txt"
    assert fused[0].score == pytest.approx(1.0)
    assert fused[1].score < 0.6


@pytest.mark.django_db
def test_texts_are_stored_outside_of_the_rows() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE oid = 'responses_app_filechunk'::regclass")
        assert cursor.fetchone() == (["toast_tuple_target=128"],)
