"""Time of a search in a vector store of many chunks: `python -m bench.file_search`, on a separate Postgres."""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench.storage import database

# The most frequent words of English, which the search leaves out of queries. Other words follow in the order of their frequency.
STOP_WORDS = tuple(
    word
    for line in (
        "the of and to a in is that for it as was with be by on not he his but at are this have from or had an they which",
        "their were there been when who will more no if out so what up about them than into its then some these two only",
    )
    for word in line.split()
)
VOCABULARY = 30_000
# Words of a chunk of 800 tokens.
WORDS = 600
SEARCHES = 100
# The fastest of these counts, as other programs of the machine only slow a search down.
REPEATS = 5
FILES = 20


def main() -> None:
    """Fill a vector store, search, print the times."""
    options = _options()
    with database():
        numbers = random.Random(options.seed)
        words = _vocabulary(numbers)
        store = _fill(options.chunks, options.dimensions, words, numbers)
        questions = [_question(words, numbers) for _ in range(SEARCHES)]
        vectors = [_vector(options.dimensions, numbers) for _ in range(SEARCHES)]
        print(
            f"{options.chunks} chunks of {WORDS} words, {SEARCHES} searches of 6 to 12 words, fastest of {REPEATS}; milliseconds"
        )
        _measure("by words", store, questions)
        _measure("by words, with a filter", store, questions, filters={"type": "gte", "key": "number", "value": FILES // 2})
        _measure("by the ten most frequent words", store, [" ".join(words[len(STOP_WORDS) :][:10])] * 20)
        if not options.dimensions:
            return
        _measure(f"by words and embeddings of {options.dimensions} numbers", store, questions, vectors)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--dimensions", type=int, default=0, help="numbers of an embedding (default: no embeddings)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _vocabulary(numbers: random.Random) -> list[str]:
    """The words in the order of their frequency."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    made = {"".join(numbers.choices(letters, k=numbers.randint(4, 10))) for _ in range(VOCABULARY)}
    return [*STOP_WORDS, *numbers.sample(sorted(made), len(made))]


def _weights(words: Sequence[str]) -> list[float]:
    """The frequencies of the words by Zipf's law."""
    return [1 / rank for rank in range(1, len(words) + 1)]


def _question(words: Sequence[str], numbers: random.Random) -> str:
    """Words of a text, two of them rare."""
    common = numbers.choices(words, _weights(words), k=numbers.randint(4, 10))
    return " ".join([*common, *numbers.sample(words[1000:], 2)])


def _vector(dimensions: int, numbers: random.Random) -> list[float]:
    vector = [numbers.gauss(0, 1) for _ in range(dimensions)]
    length = math.hypot(*vector) or 1.0
    return [number / length for number in vector]


def _fill(count: int, dimensions: int, words: Sequence[str], numbers: random.Random) -> Any:
    """Insert the chunks as an ingestion does."""
    from django.db import connection
    from django.utils import timezone

    from responses_app.models import File, VectorStore
    from responses_app.store.vector_stores import jobs, store_files

    now = timezone.now()
    store = VectorStore.objects.create(uid="vs_1", project="p", text_config="english", created_at=now, last_active_at=now)
    began = time.perf_counter()
    for number in range(FILES):
        uid = f"file-{number}"
        fields = {"project": "p", "purpose": "assistants", "bytes": 1, "created_at": now, "sha256": ""}
        File.objects.create(uid=uid, filename=uid, storage_name=uid, **fields)
        store_files.add(store, [store_files.NewStoreFile(uid, {"number": number})], FILES)
        job = jobs.claim_next()
        assert job is not None
        jobs.complete(job, list(_chunks(count // FILES, dimensions, words, numbers)))
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    print(f"filled in {time.perf_counter() - began:.0f} s")
    return store


def _chunks(count: int, dimensions: int, words: Sequence[str], numbers: random.Random) -> Iterator[Any]:
    from responses_app.store.vector_stores.chunker import TextChunk
    from responses_app.store.vector_stores.jobs import NewChunk

    weights = _weights(words)
    for number in range(count):
        text = " ".join(numbers.choices(words, weights, k=WORDS))
        yield NewChunk(TextChunk(text, 800, 400 * number), _vector(dimensions, numbers) or None)


def _measure(
    name: str, store: Any, questions: Sequence[str], vectors: Sequence[Sequence[float]] = (), filters: Any = None
) -> None:
    from responses_app.store.vector_stores.search import Query, search_store

    times = []
    for number, question in enumerate(questions):
        query = Query(question, vectors[number] if vectors else None)
        times.append(min(_time(search_store, store, [query], 20, filters) for _ in range(REPEATS)))
    high = statistics.quantiles(times, n=20)[-1]
    print(f"{name}: median {statistics.median(times):.1f}, 95 % {high:.1f}, longest {max(times):.1f}")


def _time(function: Callable[..., Any], *args: Any) -> float:
    """Milliseconds of a call that finds something."""
    began = time.perf_counter()
    assert function(*args)
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
