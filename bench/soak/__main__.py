"""Mixed load for hours while a web process is killed now and then: memory, files, connections, disk and page times meanwhile.

    python -m bench.soak [--minutes 120] [--clients 4] [--pause 2] [--kill-every 300] [--keep 20m] [--every 60] [--write-docs]

The server is `bin/serve` with demo-chat, two web processes and an engine in a worker. The first web process is not killed, so that the
memory of a process of this age is measured. Responses are deleted `--keep` after their end, so tables must stop growing after that
time. Ends with 1 if a session fails that no kill has interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Final

import httpx2
import openai
import psutil
import psycopg

from bench.soak.sessions import SESSIONS, Session
from bench.support.docs import WRITE_DOCS, conditions, require_section, write_section
from bench.support.markdown import markdown_row, number_table
from bench.support.servers import BenchServer, end_on_sigterm, python, serve
from bench.support.signed_in_pages import page_ms, sign_in
from responses_app.installation.database_url import superuser_url

PORT: Final = 8831
SECTION: Final = "soak"
KEY: Final = "sk-soak"
WEB_PROCESS: Final = "responses_app.server.processes.web_process"
MIB: Final = 1024 * 1024
# After a kill the web process is started again, and responses are continued by another process, within this time in seconds.
RECOVERY_S: Final = 30.0
SESSION_LIMIT_S: Final = 300.0
SIZES_SQL: Final = """
SELECT (SELECT count(*) FROM responses_app_response), pg_database_size(current_database()),
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""
PAGES: Final = ("/responses", "/", "/chat")
HEAD: Final = (
    "minute",
    "sessions",
    "interrupted",
    "failed",
    "web process (MiB)",
    "its threads",
    "open files",
    "connections",
    "stored responses",
    "database (MiB)",
    "data folder (MiB)",
    "list, overview, chat (ms)",
)


@dataclass(slots=True)
class Tally:
    """Sessions that were ended, that a kill interrupted, and that failed, with the reasons of the failures."""

    ended: int = 0
    interrupted: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    killed_at: float = -RECOVERY_S


@dataclass(frozen=True, slots=True)
class Soak:
    """Server under load: process, data folder, connections to Postgres and to the pages, and the tally of the sessions."""

    server: BenchServer
    data: Path
    link: psycopg.Connection[tuple[float, ...]]
    pages: httpx2.Client
    tally: Tally

    def webs(self) -> list[psutil.Process]:
        """Return the web processes, the oldest first."""
        children = psutil.Process(self.server.process.pid).children(recursive=True)
        return sorted((one for one in children if _is_web(one)), key=psutil.Process.create_time)

    def measure(self, minute: float) -> list[float]:
        """Return the numbers of a row of the table."""
        webs = self.webs()
        stored, database, connections = self.link.execute(SIZES_SQL).fetchone() or (0.0, 0.0, 0.0)
        tally, first = self.tally, webs[0]
        files = sum(one.num_fds() for one in webs)
        folder = sum(map(_size, self.data.rglob("*")))
        sessions = [minute, tally.ended, tally.interrupted, tally.reasons.total()]
        resources = [first.memory_info().rss / MIB, first.num_threads(), files, connections]
        return [*sessions, *resources, stored, database / MIB, folder / MIB, *(page_ms(self.pages, path) for path in PAGES)]


def main() -> None:
    """Run the benchmark."""
    options = _parse()
    end_on_sigterm()
    load = os.getloadavg()[0]
    if options.write_docs:
        require_section(SECTION)
    with tempfile.TemporaryDirectory(prefix="verbatim-soak-") as name:
        data = Path(name) / "data"
        env = {"RESPONSES_DATA_DIR": str(data), "RESPONSES_API_KEY": KEY, "RESPONSES_KEEP_RESPONSES": options.keep}
        command = [
            python(),
            "-m",
            "responses_app.server",
            "--demo-tools",
            "--worker",
            "--web",
            "2",
            "--port",
            str(options.port),
        ]
        with (
            serve(command, options.port, env, Path(name) / "server.log") as server,
            psycopg.connect(superuser_url(data), autocommit=True) as link,
            httpx2.Client(base_url=f"http://127.0.0.1:{options.port}", follow_redirects=True, timeout=60) as pages,
        ):
            sign_in(pages, data)
            soak = Soak(server, data, link, pages, Tally())
            rows = asyncio.run(_run(soak, options))
    if options.write_docs:
        lines = number_table(HEAD, [_cells(row) for row in rows[:: max(1, len(rows) // 12)]])
        write_section(SECTION, [conditions(1, load), "", *lines])
    if soak.tally.reasons:
        raise SystemExit(1)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--clients", type=int, default=4, help="sessions at a time (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between sessions of a client (default: %(default)s)")
    parser.add_argument("--kill-every", type=float, default=300.0, metavar="SECONDS", help="interval between kills")
    parser.add_argument("--keep", default="20m", help="time that a response is kept (default: %(default)s)")
    parser.add_argument("--every", type=float, default=60.0, metavar="SECONDS", help="interval between rows")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument(WRITE_DOCS, action="store_true", help="write the table to docs/operations")
    return parser.parse_args()


async def _run(soak: Soak, options: argparse.Namespace) -> list[list[float]]:
    """Send the load until the time is over, and return the rows."""
    until = time.monotonic() + 60 * options.minutes
    client = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{options.port}/v1", api_key=KEY, timeout=SESSION_LIMIT_S)
    chances = [random.Random(options.seed * 1000 + number) for number in range(options.clients)]
    async with asyncio.TaskGroup() as group:
        senders = [group.create_task(_send(soak.tally, client, chance, options.pause, until)) for chance in chances]
        killer = group.create_task(_kill(soak, options.kill_every))
        rows = await _report(soak, options.every, until)
        await asyncio.wait(senders)
        killer.cancel()
    await client.close()
    print(*(f"{count} x {reason}" for reason, count in soak.tally.reasons.most_common()), sep="\n", flush=True)
    return rows


async def _send(tally: Tally, client: openai.AsyncOpenAI, chance: random.Random, pause: float, until: float) -> None:
    """Run sessions in sequence."""
    while time.monotonic() < until:
        (session,) = chance.choices(list(SESSIONS), list(SESSIONS.values()))
        await _run_session(tally, client, chance, session)
        await asyncio.sleep(chance.uniform(0, 2 * pause))


async def _run_session(tally: Tally, client: openai.AsyncOpenAI, chance: random.Random, session: Session) -> None:
    began = time.monotonic()
    try:
        async with asyncio.timeout(SESSION_LIMIT_S):
            await session(client, chance)
    except Exception as error:
        if began - RECOVERY_S < tally.killed_at:
            tally.interrupted += 1
            return
        reason = f"{session.__name__}: {type(error).__name__}: {str(error)[:200]}"
        tally.reasons[reason] += 1
        print(reason, flush=True)
    else:
        tally.ended += 1


async def _kill(soak: Soak, every_s: float) -> None:
    """Kill the youngest web process at an interval, until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        webs = soak.webs()
        if len(webs) > 1:
            soak.tally.killed_at = time.monotonic()
            webs[-1].kill()


async def _report(soak: Soak, every_s: float, until: float) -> list[list[float]]:
    """Print a row at an interval, and the means of the second and the last quarter."""
    print(markdown_row(HEAD), flush=True)
    rows, began = list[list[float]](), time.monotonic()
    while time.monotonic() < until:
        await asyncio.sleep(every_s)
        rows.append(await asyncio.to_thread(soak.measure, (time.monotonic() - began) / 60))
        print(markdown_row(_cells(rows[-1])), flush=True)
    quarter = len(rows) // 4
    for name, some in (("second quarter", rows[quarter : 2 * quarter]), ("last quarter", rows[3 * quarter :])):
        if some:
            print(name, markdown_row(_cells([fmean(numbers) for numbers in zip(*some, strict=True)])), flush=True)
    return rows


def _is_web(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return WEB_PROCESS in process.cmdline()
    return False


def _size(path: Path) -> int:
    """Return the bytes of a file; 0 for a folder, and for a file that was removed meanwhile."""
    with suppress(OSError):
        return path.stat().st_size if path.is_file() else 0
    return 0


def _cells(row: Sequence[float]) -> list[str]:
    *numbers, first, second, third = row
    return [*(f"{number:,.0f}" for number in numbers), f"{first:.0f}, {second:.0f}, {third:.0f}"]


if __name__ == "__main__":
    main()
