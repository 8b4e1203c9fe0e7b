"""Simulated days with retention: table sizes, times of pages, and memory of the server, day by day.

    python -m bench.month [--days 30] [--responses 100000] [--keep 7] [--write-docs]

Responses of a day are copies in SQL of responses that the server has made, dated on that day, with items, requests and archived logs.
`manage.py prune` then deletes what is older than `--keep` days. The responses of the last day are real requests. The server is one
`bin/serve` with a recording as its engine, which runs all the time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, Final, LiteralString

import httpx2
import psutil
import psycopg
from psycopg import sql

from bench.support.docs import WRITE_DOCS, conditions, require_section, write_section
from bench.support.load import run_load, story_requests
from bench.support.markdown import markdown_row, number_table
from bench.support.servers import BenchServer, end_on_sigterm, python, serve
from bench.support.signed_in_pages import page_ms, sign_in
from bench.support.stream_client import Target
from bench.tape.recording import write_tape
from responses_app.installation.database_url import superuser_url

PORT: Final = 8833
SECTION: Final = "month"
KEY: Final = "sk-month"
MIB: Final = 1024 * 1024
TEMPLATES, TOKENS, STREAMS = 200, 128, 32
DAY_S: Final = 86_400
TABLES: Final = ("response", "item", "storedrequest", "logpage", "event")
PAGES: Final = ("/responses", "/responses?q=dragon", "/?range=30d", "/chat")
# New primary keys, each with the template that is copied, and a time of the day.
KEYS_SQL: Final = """
CREATE TEMP TABLE copies ON COMMIT DROP AS SELECT nextval('responses_app_response_id_seq') AS id, template.id AS template,
  to_timestamp(%(begin)s) + n * interval '1 day' / %(many)s AS began
FROM generate_series(0, %(many)s - 1) AS n
JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM responses_app_response ORDER BY id LIMIT %(templates)s) AS template
  ON template.place = n %% %(templates)s
"""
# Columns that a copy has otherwise than its template.
RESPONSE: Final = {
    "id": "copies.id",
    "uid": "'resp_copy_' || copies.id",
    "thread": "'resp_copy_' || copies.id",
    "created_at": "copies.began",
    "ended_at": "copies.began + interval '2 s'",
}
ITEM: Final = {
    "id": "nextval('responses_app_item_id_seq')",
    "uid": "'item_copy_' || row.id || '_' || copies.id",
    "response_id": "copies.id",
}
OF_RESPONSE: Final = {"response_id": "copies.id"}
COPIES: Final = {"response": RESPONSE, "item": ITEM, "storedrequest": OF_RESPONSE, "logpage": OF_RESPONSE}
COLUMNS_SQL: Final = """SELECT attname FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''"""
COPY_SQL: Final = "INSERT INTO {table} ({columns}) SELECT {values} FROM copies JOIN {table} AS row ON {of} = copies.template"
# The tree of a table without partitions has no rows.
SIZE_SQL: Final = """SELECT coalesce(sum(pg_total_relation_size(relid)), pg_total_relation_size(%s::regclass))
FROM pg_partition_tree(%s)"""
DATABASE_SQL: Final = """
SELECT pg_database_size(current_database()), (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""
HEAD: Final = (
    "day",
    "responses",
    "prune (s)",
    "deleted a second",
    *(f"{table} (MiB)" for table in TABLES),
    "database (MiB)",
    "data folder (MiB)",
    "largest process (MiB)",
    "open files",
    "connections",
    "list, search, overview, chat (ms)",
)


@dataclass(frozen=True, slots=True)
class Month:
    """Server, data folder, connections to Postgres and to the pages, and the options."""

    server: BenchServer
    data: Path
    link: psycopg.Connection[Any]
    pages: httpx2.Client
    options: argparse.Namespace

    def days(self) -> Iterator[list[float]]:
        """Fill and prune each day, and yield the numbers of its row."""
        target = Target("127.0.0.1", self.options.port, "tape", KEY)
        run_load(target, story_requests(target, TEMPLATES), STREAMS)
        self._wait_until_archived()
        now = time.time()
        for day in range(1, self.options.days + 1):
            begin = now - (self.options.days - day + 1) * DAY_S
            if day < self.options.days:
                self._copy(begin)
            else:
                run_load(target, story_requests(target, self.options.responses), STREAMS)
                self._wait_until_archived()
            pruned = self._prune(now - begin - DAY_S + self.options.keep * DAY_S)
            # Stands for the autovacuum of a day.
            self.link.execute("VACUUM")
            yield [day, self._count(), *pruned, *self._sizes(), *(page_ms(self.pages, path) for path in PAGES)]

    def _copy(self, begin: float) -> None:
        """Add the responses of a day."""
        from responses_app.store.log.rows import partitions

        while partitions.make_next(datetime.fromtimestamp(begin, UTC)):
            pass
        with self.link.transaction():
            self.link.execute(KEYS_SQL, {"begin": begin, "many": self.options.responses, "templates": TEMPLATES})
            for table, changes in COPIES.items():
                self._copy_rows(f"responses_app_{table}", changes)
        self.link.execute("ANALYZE responses_app_response, responses_app_item")

    def _copy_rows(self, table: str, changes: dict[str, str]) -> None:
        """Copy the rows of a table for each new primary key."""
        columns = [row[0] for row in self.link.execute(COLUMNS_SQL, (table,))]
        values = [sql.SQL(changes[name]) if name in changes else sql.Identifier("row", name) for name in columns]
        statement = sql.SQL(COPY_SQL).format(
            table=sql.Identifier(table),
            columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
            values=sql.SQL(", ").join(values),
            of=sql.Identifier("row", "id" if changes is RESPONSE else "response_id"),
        )
        self.link.execute(statement)

    def _prune(self, age_s: float) -> list[float]:
        """Run `manage.py prune`, and return the seconds and the responses deleted a second."""
        from django.core.management import call_command

        before, began = self._count(), time.monotonic()
        call_command("prune", "--responses", f"{int(age_s) // 60}m", stdout=StringIO())
        seconds = time.monotonic() - began
        return [seconds, (before - self._count()) / seconds]

    def _count(self) -> float:
        return self._number("SELECT count(*) FROM responses_app_response")

    def _wait_until_archived(self) -> None:
        while self.link.execute("SELECT EXISTS (SELECT FROM responses_app_event)").fetchone() == (True,):
            time.sleep(1)

    def _sizes(self) -> list[float]:
        """Return the sizes of the tables, the database and the folder, and the memory, files and connections of the server."""
        tables = [self._number(SIZE_SQL, f"responses_app_{table}", f"responses_app_{table}") / MIB for table in TABLES]
        database, connections = self.link.execute(DATABASE_SQL).fetchone() or (0, 0)
        folder = sum(path.stat().st_size for path in self.data.rglob("*") if path.is_file())
        processes = self._processes()
        memory, files = max(one.memory_info().rss for one in processes), sum(one.num_fds() for one in processes)
        return [*tables, database / MIB, folder / MIB, memory / MIB, files, connections]

    def _processes(self) -> list[psutil.Process]:
        """Return the processes of the server outside of Postgres."""
        children = psutil.Process(self.server.process.pid).children(recursive=True)
        return [one for one in children if one.name() != "postgres"]

    def _number(self, statement: LiteralString, *values: str) -> float:
        (number,) = self.link.execute(statement, values).fetchone() or (0,)
        return float(number)


def main() -> None:
    """Run the benchmark."""
    options = _parse()
    end_on_sigterm()
    load = os.getloadavg()[0]
    if options.write_docs:
        require_section(SECTION)
    with tempfile.TemporaryDirectory(prefix="verbatim-month-") as name:
        data = Path(name) / "data"
        engine = f"script://{write_tape(Path(name), TOKENS, None)}?loop=1"
        command = [python(), "-m", "responses_app.server", "--engine", engine, "--port", str(options.port)]
        env = {"RESPONSES_DATA_DIR": str(data), "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
        with (
            serve(command, options.port, env, Path(name) / "server.log") as server,
            psycopg.connect(superuser_url(data), autocommit=True) as link,
            httpx2.Client(base_url=f"http://127.0.0.1:{options.port}", follow_redirects=True, timeout=60) as pages,
        ):
            sign_in(pages, data)
            _set_up_django(data)
            rows = _report(Month(server, data, link, pages, options))
    if options.write_docs:
        write_section(SECTION, [conditions(1, load), "", *number_table(HEAD, [_cells(row) for row in rows])])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--responses", type=int, default=100_000, help="of a day (default: %(default)s)")
    parser.add_argument(
        "--keep", type=int, default=7, metavar="DAYS", help="time that a response is kept (default: %(default)s)"
    )
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument(WRITE_DOCS, action="store_true", help="write the table to docs/operations")
    return parser.parse_args()


def _set_up_django(data: Path) -> None:
    """Let `manage.py prune` and the partitions of this process use the database of the server."""
    os.environ |= {
        "RESPONSES_DATA_DIR": str(data),
        "DATABASE_URL": superuser_url(data),
        "DJANGO_SETTINGS_MODULE": "project.settings",
    }
    import django

    django.setup(set_prefix=False)


def _report(month: Month) -> list[list[float]]:
    """Print a row for each day."""
    print(markdown_row(HEAD), flush=True)
    rows = []
    for row in month.days():
        rows.append(row)
        print(markdown_row(_cells(row)), flush=True)
    return rows


def _cells(row: Sequence[float]) -> list[str]:
    numbers, times = row[: -len(PAGES)], row[-len(PAGES) :]
    return [*(f"{number:,.0f}" for number in numbers), ", ".join(f"{number:.0f}" for number in times)]


if __name__ == "__main__":
    main()
