"""Train the dictionary of `store.log.page_codec` with the logs of data folders: `python -m bench.page_dictionary FILE FOLDER ...`.

`python -m tests.chaos system --kills 0 --restarts 0 --folder FOLDER` leaves such a folder. Nine of ten logs train, the tenth measures.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import zstandard

SIZE = 32 * 1024
# Events of a training sample: as many as short pages have.
SAMPLE = 200


def main() -> None:
    """Read the logs, train, write the file, and print the bytes per event."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--id", type=int, default=1, help="id of the dictionary (default: %(default)s)")
    options = parser.parse_args()
    logs = [log for folder in options.folders for log in read_logs(folder)]
    random.Random(1).shuffle(logs)
    test, training = logs[: len(logs) // 10], logs[len(logs) // 10 :]
    dictionary = train(training, options.id)
    options.file.write_bytes(dictionary)
    events = sum(map(len, test))
    print(
        f"{len(logs)} logs, {sum(map(len, logs))} events; of the {events} that did not train: {measure(test, dictionary):.2f} bytes each"
    )


def train(logs: Sequence[Sequence[Any]], number: int) -> bytes:
    """Train a dictionary with the id `number`."""
    from responses_app.store.log.page_codec import format_lines

    samples: list[bytes | bytearray | memoryview[int]] = [
        b"".join(format_lines(log[at : at + SAMPLE])) for log in logs for at in range(0, len(log), SAMPLE)
    ]
    return zstandard.train_dictionary(SIZE, samples, dict_id=number).as_bytes()


def measure(logs: Sequence[Sequence[Any]], dictionary: bytes) -> float:
    """Return the bytes per event of the logs, the last event of each in a separate page."""
    from responses_app.store.log.page_codec import LEVEL, format_lines

    compressor = zstandard.ZstdCompressor(level=LEVEL, dict_data=zstandard.ZstdCompressionDict(dictionary))
    pages = [page for log in logs for page in (log[:-1], log[-1:])]
    return sum(len(compressor.compress(b"".join(format_lines(page)))) for page in pages) / sum(map(len, logs))


def read_logs(folder: Path) -> Iterator[Sequence[Any]]:
    """Read all logs of the database in a data folder."""
    from responses_app.server.postgres.cluster import Postgres

    with Postgres(folder / "database", {}) as postgres:
        os.environ |= {"DATABASE_URL": postgres.url, "DJANGO_SETTINGS_MODULE": "project.settings"}
        import django

        django.setup()
        from django.db import connection

        from responses_app.models import LogPage, Response
        from responses_app.store.log.page_codec import unpack

        for pk in Response.objects.values_list("pk", flat=True):
            pages = LogPage.objects.filter(response_id=pk).order_by("first").values_list("data", flat=True)
            if log := [frame for page in pages for frame in unpack(bytes(page))]:
                yield log
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
