"""SQL of the chaos test: leases, connections, and terminating connections."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg

from tests.chaos.waits import pause

APPLICATION_NAME = "chaos"
RETRY_S = 0.1
HELD = """
SELECT lease.response_id, response.uid, lease.epoch,
    (SELECT max(number + coalesce(events, 1) - 1) FROM responses_app_event event WHERE event.response_id = lease.response_id)
FROM responses_app_lease lease JOIN responses_app_response response ON response.id = lease.response_id
JOIN responses_app_worker worker ON worker.uid = lease.worker
WHERE worker.name LIKE %s AND NOT lease.waiting
"""
STATE = """
SELECT response.id, response.ended_at IS NOT NULL, coalesce(lease.epoch, 0), lease.worker IS NOT NULL,
    (SELECT max(number + coalesce(events, 1) - 1) FROM responses_app_event event WHERE event.response_id = response.id)
FROM responses_app_response response LEFT JOIN responses_app_lease lease ON lease.response_id = response.id
WHERE response.id = ANY(%s)
"""
HOLDERS = """
SELECT DISTINCT worker.name FROM responses_app_lease lease
JOIN responses_app_worker worker ON worker.uid = lease.worker WHERE lease.response_id = ANY(%s)
"""
OTHERS = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'chaos'"


class Database:
    """Database connection of the chaos test, reopened when it is lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._link: psycopg.AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()

    async def query(self, query: str, arguments: Sequence[object] = (), patience: float = 30.0) -> list[Any]:
        """Return the rows; reopen a broken connection for up to `patience` seconds."""
        until = asyncio.get_running_loop().time() + patience
        async with self._lock:
            while True:
                try:
                    if self._link is None:
                        self._link = await psycopg.AsyncConnection.connect(
                            self._url, autocommit=True, application_name=APPLICATION_NAME
                        )
                    cursor = await self._link.execute(query, arguments)
                    return await cursor.fetchall() if cursor.description else []
                except psycopg.OperationalError:
                    await self.close()
                    if asyncio.get_running_loop().time() > until:
                        raise
                    await pause(RETRY_S)

    async def close(self) -> None:
        """Close the connection."""
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def held(self, pid: int) -> list[tuple[int, str, int, int]]:
        """Return key, id, epoch and last event number of each response that the process runs."""
        return [(pk, uid, epoch, -1 if last is None else last) for pk, uid, epoch, last in await self.query(HELD, [f"%:{pid}"])]

    async def holders(self, keys: Sequence[int]) -> set[int]:
        """Return the processes that hold these responses now."""
        rows = await self.query(HOLDERS, [list(keys)])
        return {int(name.rpartition(":")[2]) for (name,) in rows}

    async def connections(self) -> int:
        """Count the connections of others."""
        return int((await self.query(f"SELECT count(*) {OTHERS}"))[0][0])

    async def stuck(self) -> int:
        """Count the transactions that have been idle for more than five seconds."""
        return int(
            (await self.query(f"SELECT count(*) {OTHERS} AND state LIKE 'idle in%%' AND xact_start < now() - interval '5 s'"))[
                0
            ][0]
        )

    async def running(self) -> list[str]:
        """Return the ids of responses that have not ended."""
        return [uid for (uid,) in await self.query("SELECT uid FROM responses_app_response WHERE ended_at IS NULL ORDER BY id")]
