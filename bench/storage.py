"""Size of events on disk before and after archiving, and times of reading: `python -m bench.storage`, on a separate Postgres."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SIZES = (50, 100, 200, 400, 1000)
TIMES = 30


def main() -> None:
    """Fill, measure, archive the logs, measure again."""
    options = _options()
    with database():
        short, long = _filled(options)
        keys, events, deltas = short
        print(f"{len(keys)} responses, {events} events, {deltas} of them deltas; and one response of 10,000 deltas")
        counts = events + long[1], deltas + long[2]
        reading("before archiving", keys, long[0][0])
        disk("before archiving", "event", *counts)
        archive_all([*keys, *long[0]], counts[0])
        disk("after archiving", "logpage", *counts)
        disk("after archiving, empty and free for new events", "event", *counts)
        reading("after archiving", keys, long[0][0])
        erase_all_deltas([*keys, *long[0]])
        disk("without deltas, written anew", "logpage", *counts, how="VACUUM FULL")


def _filled(options: argparse.Namespace) -> tuple[tuple[list[int], int, int], tuple[list[int], int, int]]:
    """The many responses, and the one."""
    many = fill(options.responses, options.logprobs, options.seed, options.deltas)
    return many, fill(1, None, options.seed + 1, (10_000,))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=2000)
    parser.add_argument("--deltas", type=int, nargs="+", default=SIZES, help="of a response, by chance (default: %(default)s)")
    parser.add_argument(
        "--logprobs", type=int, help="alternatives for each token of the messages (default: no log-probabilities)"
    )
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


@contextmanager
def database() -> Iterator[None]:
    """A Postgres with its defaults in a folder that goes afterwards, with all tables."""
    from responses_app.server.postgres.cluster import Postgres

    with tempfile.TemporaryDirectory(prefix="verbatim-storage-") as folder, Postgres(Path(folder), {}) as postgres:
        os.environ |= {"DATABASE_URL": postgres.url, "RESPONSES_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "project.settings"}
        import django
        from django.core.management import call_command
        from django.db import connection

        django.setup()
        call_command("migrate", verbosity=0)
        yield
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]


def fill(count: int, logprobs: int | None, seed: int, sizes: Sequence[int] = SIZES) -> tuple[list[int], int, int]:
    """So many responses that have ended; their keys, their events, and how many of these are deltas."""
    from bench.support.logs import born, log
    from responses_app.models import Response, Status

    chance, keys, events, deltas = random.Random(seed), [], 0, 0
    for number in range(count):
        frames = log(chance.choice(sizes), chance, logprobs)
        uid = f"resp_{seed}_{sizes[0]}_{number}"
        row = Response(
            uid=uid, project="bench", model="m", thread=uid, status=Status.COMPLETED, created_at=born(), ended_at=born()
        )
        row.save()
        keys.append(row.pk)
        _copy(row.pk, frames)
        events += len(frames)
        deltas += sum(frame.type.endswith(".delta") for frame in frames)
    return keys, events, deltas


def _copy(pk: int, frames: Sequence[Any]) -> None:
    """As the recorder does, some events at a time; a delta has the id of its token."""
    from django.db import connection

    with connection.cursor() as cursor:
        for at in range(0, len(frames), 8):
            with cursor.copy("COPY responses_app_event (response_id, number, type, data, ms, tokens) FROM STDIN") as copy:
                for one in frames[at : at + 8]:
                    tokens = b"1234" if one.type.endswith(".delta") else None
                    copy.write_row((pk, one.number, one.type, one.data.decode(), one.ms, tokens))


def disk(when: str, table: str, events: int, deltas: int, how: str = "VACUUM") -> None:
    """Bytes of a table with its indexes and all, for each event, and all of it laid on the deltas."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"{how} responses_app_{table}")
        parts = "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(%s::regclass)"
        cursor.execute(parts, [f"responses_app_{table}"])
        size = int(cursor.fetchone()[0])
    each = f"{size / events:.1f} bytes an event, {size / deltas:.1f} if the deltas paid for all"
    print(f"{when}, table {table}: {size / 1e6:.1f} MB, {each}")


def archive_all(keys: Sequence[int], events: int) -> None:
    """Archive the logs of the responses `keys`."""
    from responses_app.store.log.archive import archive_log

    began = time.perf_counter()
    for pk in keys:
        archive_log(pk)
    print(f"archiving: {(time.perf_counter() - began) / events * 1e6:.1f} ms for 1000 events")


def erase_all_deltas(keys: Sequence[int]) -> None:
    """Erase the deltas of the responses `keys`."""
    from responses_app.models import Response
    from responses_app.store.log.retention import erase_deltas

    for row in Response.objects.filter(pk__in=keys):
        erase_deltas(row)


def reading(when: str, keys: Sequence[int], long: int) -> None:
    """Milliseconds, medians."""
    from responses_app.store.content import responses as content_responses
    from responses_app.store.log import reader

    async def replayed(pk: int, after: int = -1) -> None:
        async for _ in reader.stored_frames(pk, after):
            pass

    def listing() -> Awaitable[Any]:
        return content_responses.page("bench", content_responses.ResponseFilter(), limit=100, newest_first=False, after=None)

    figures = {
        "GET": _median(reader.snapshot, keys),
        "GET of the long one": _median(reader.snapshot, [long]),
        "replay": _median(replayed, keys),
        "replay of the long one": _median(replayed, [long]),
        "of its last events": _median(lambda pk: replayed(pk, 9_990), [long]),
        "a list of 100": _median(lambda _: listing(), [0]),
    }
    print(f"{when}, ms: " + ", ".join(f"{name} {figure:.2f}" for name, figure in figures.items()))


def _median(work: Callable[[int], Awaitable[Any]], keys: Sequence[int]) -> float:
    async def timed() -> float:
        spent = []
        for number in range(TIMES):
            began = time.perf_counter()
            await work(keys[number % len(keys)])
            spent.append(time.perf_counter() - began)
        return statistics.median(spent) * 1e3

    return asyncio.run(timed())


if __name__ == "__main__":
    main()
