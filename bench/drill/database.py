"""What only SQL can show, and do: who holds what, whose connections there are, and ending some."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg

OURS = "drill"
HELD = """
SELECT lease.response_id, response.uid, lease.epoch,
    (SELECT max(number) FROM responses_app_event event WHERE event.response_id = lease.response_id)
FROM responses_app_lease lease JOIN responses_app_response response ON response.id = lease.response_id
JOIN responses_app_worker worker ON worker.uid = lease.worker
WHERE worker.name LIKE %s AND NOT lease.waiting
"""
STATE = """
SELECT response.id, response.ended_at IS NOT NULL, coalesce(lease.epoch, 0), lease.worker IS NOT NULL,
    (SELECT max(number) FROM responses_app_event event WHERE event.response_id = response.id)
FROM responses_app_response response LEFT JOIN responses_app_lease lease ON lease.response_id = response.id
WHERE response.id = ANY(%s)
"""
HOLDERS = """
SELECT DISTINCT worker.name FROM responses_app_lease lease
JOIN responses_app_worker worker ON worker.uid = lease.worker WHERE lease.response_id = ANY(%s)
"""
OTHERS = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'drill'"


class Database:
    """One connection of our own, made again when it is lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._link: psycopg.AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()

    async def ask(self, query: str, arguments: Sequence[object] = (), patience: float = 30.0) -> list[Any]:
        """The rows. A connection that breaks is made again, as long as patience lasts."""
        until = asyncio.get_running_loop().time() + patience
        async with self._lock:
            while True:
                try:
                    if self._link is None:
                        self._link = await psycopg.AsyncConnection.connect(self._url, autocommit=True, application_name=OURS)
                    cursor = await self._link.execute(query, arguments)
                    return await cursor.fetchall() if cursor.description else []
                except psycopg.OperationalError:
                    await self.close()
                    if asyncio.get_running_loop().time() > until:
                        raise
                    await asyncio.sleep(0.1)

    async def close(self) -> None:
        """Hang up."""
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def held(self, pid: int) -> list[tuple[int, str, int, int]]:
        """What the process runs: key, id, epoch and last number of each response."""
        return [(pk, uid, epoch, -1 if last is None else last) for pk, uid, epoch, last in await self.ask(HELD, [f"%:{pid}"])]

    async def holders(self, keys: Sequence[int]) -> set[int]:
        """The processes that hold these responses now."""
        rows = await self.ask(HOLDERS, [list(keys)])
        return {int(name.rpartition(":")[2]) for (name,) in rows}

    async def connections(self) -> int:
        """How many there are, without ours."""
        return int((await self.ask(f"SELECT count(*) {OTHERS}"))[0][0])

    async def stuck(self) -> int:
        """How many transactions have been open and idle for more than five seconds."""
        return int(
            (await self.ask(f"SELECT count(*) {OTHERS} AND state LIKE 'idle in%%' AND xact_start < now() - interval '5 s'"))[0][
                0
            ]
        )

    async def running(self) -> list[str]:
        """The ids of responses that have not ended."""
        return [uid for (uid,) in await self.ask("SELECT uid FROM responses_app_response WHERE ended_at IS NULL ORDER BY id")]
