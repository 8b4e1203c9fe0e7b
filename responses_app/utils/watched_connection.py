"""Database connection that notices a silent Postgres: all processes are paused, or the process of this connection is.

The kernel acknowledges the packets of such a server, so neither keepalives nor a time limit of TCP ends the connection, and a
`statement_timeout` is kept by the server itself. A statement may take long, however, while Postgres works. So after SILENCE_S
seconds without an answer another connection asks Postgres for a sign of life, and whether the process of this connection has taken
the statement.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.rows import Row

RV = TypeVar("RV")

# Seconds without an answer after which Postgres is asked for a sign of life, for which it has ANSWER_LIMIT_S seconds.
SILENCE_S: Final = 10.0
ANSWER_LIMIT_S: Final = 5
# Age in seconds up to which the last answer counts for other connections. After a missing answer the next question comes sooner.
FRESH_S: Final = 5.0
KNOWN_SILENCE_S: Final = 1.0
SILENT: Final = (
    f"Postgres has not answered for {SILENCE_S:.0f} s, and accepts no other connection or has not begun the statement"
)
# A process that has waited so long for a statement, while the statement waits for it, does not run. A pooler has other numbers.
BACKEND_SQL: Final = """
SELECT 1 FROM pg_stat_activity
WHERE pid = %s AND usename = current_user AND datname = current_database()
    AND state LIKE 'idle%%' AND state_change < clock_timestamp() - %s * interval '1 second'
"""


class SignOfLife:
    """Question to a Postgres whether it works, with an answer that all connections to it share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked_at, self._is_silent = float("-inf"), False

    @property
    def limit_s(self) -> float:
        """Return the seconds without an answer after which the question is due."""
        return KNOWN_SILENCE_S if self._is_silent else SILENCE_S

    def is_missing(self, parameters: dict[str, Any]) -> bool:
        """Return whether Postgres gives no sign of life. Blocks for at most twice ANSWER_LIMIT_S seconds."""
        with self._lock:
            if time.monotonic() - self._asked_at > FRESH_S:
                self._is_silent = not _answers(parameters)
                self._asked_at = time.monotonic()
            return self._is_silent


class WatchedConnection(psycopg.Connection[Row]):
    """Connection whose statements fail with OperationalError when Postgres is silent. Then the connection is closed."""

    def is_silent(self) -> bool:
        """Return whether Postgres, or its process for this connection, gives no sign of life. Blocks for some seconds."""
        parameters = {**self.info.get_parameters(), "password": self.info.password}
        return self._sign_of_life.is_missing(parameters) or _waits_for_statement(parameters, self.info.backend_pid)

    def wait(self, gen: PQGen[RV], *args: Any, **options: Any) -> RV:
        """Wait for the answer to a statement."""
        return super().wait(self._watched(gen), *args, **options)

    @property
    def _sign_of_life(self) -> SignOfLife:
        return _signs.setdefault((self.info.host, self.info.port), SignOfLife())

    def _watched(self, gen: PQGen[RV]) -> Generator[Any, Any, RV]:
        """Run `gen`, which is sent a false value every tenth of a second while the server is silent."""
        since = 0.0
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    since = 0.0
                elif not since:
                    since = time.monotonic()
                elif time.monotonic() - since > self._sign_of_life.limit_s:
                    if self.is_silent():
                        self.pgconn.finish()
                        raise psycopg.OperationalError(SILENT)
                    since = 0.0
                state = gen.send(ready)
        except StopIteration as end:
            result: RV = end.value
            return result


def _answers(parameters: dict[str, Any]) -> bool:
    """Return whether Postgres opens a session. A refusal, as of too many connections, is an answer too."""
    try:
        psycopg.connect(**{**parameters, "connect_timeout": ANSWER_LIMIT_S}).close()
    except psycopg.Error as error:
        return "FATAL:" in str(error)
    return True


def _waits_for_statement(parameters: dict[str, Any], backend: int) -> bool:
    """Return whether the process has been idle since before a statement was sent to it SILENCE_S seconds ago."""
    try:
        with psycopg.connect(**{**parameters, "connect_timeout": ANSWER_LIMIT_S}, autocommit=True) as link:
            return link.execute(BACKEND_SQL, [backend, SILENCE_S / 2]).fetchone() is not None
    except psycopg.Error:
        return False


_signs: Final[dict[tuple[str, int], SignOfLife]] = {}
