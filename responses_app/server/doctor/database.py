"""Checks of the database: connection, version, encoding, settings, pooler, rights, migrations, connections, clock."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, ProgrammingError, connection, connections

from responses_app.installation.data_dir import MANAGE
from responses_app.server.bootstrap import pooler, shared_resources
from responses_app.server.bootstrap.errors import CannotStart
from responses_app.server.doctor.findings import FAILED, OK, SKIPPED, WARNING, Check, CheckResults
from responses_app.store.cluster.leases import MAX_AHEAD_S, WORKER_TIMEOUT_S
from responses_app.store.database_problems import NO_STANDBY, connection_problem, encoding_problem, remedy, replica_problem
from responses_app.store.health import DatabaseProbe, later_version_problem
from responses_app.store.replica import REPLICA, replica

MAX_NAMES: Final = 3
# Connections of a process outside the pool: events, transactions, look-ups of repeated requests, LISTEN, NOTIFY.
OWN_CONNECTIONS: Final = 5
_RIGHTS_SQL: Final = """
SELECT has_schema_privilege(current_user, current_schema(), 'CREATE'),
  (SELECT array_agg(relname::text) FROM pg_class
   WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
   AND NOT pg_has_role(current_user, relowner, 'USAGE')),
  current_user::text, current_schema()::text
"""
_REPLICA_SQL: Final = """
SELECT pg_is_in_recovery(), COALESCE(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0)::float
"""
# For each of RECOMMENDED, whether the value is smaller.
_SETTINGS_SQL: Final = """
SELECT current_setting('wal_compression') = 'off', pg_size_bytes(current_setting('max_wal_size')) < 2 * 1024 ^ 3,
  current_setting('checkpoint_timeout')::interval < '15 minutes'
"""
RECOMMENDED: Final = ("wal_compression = on", "max_wal_size = 2GB", "checkpoint_timeout = 15min")
_CONNECTIONS_SQL: Final = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
  (SELECT count(*) FROM responses_app_worker
   WHERE heartbeat_at BETWEEN clock_timestamp() - make_interval(secs => %s) AND clock_timestamp() + make_interval(secs => %s))
"""


def checks() -> list[tuple[str, Check]]:
    """Return the checks of the database; only the first check if the database does not answer."""
    first: list[tuple[str, Check]] = [("database", check_connection)]
    if connection_problem() is not None:
        return first
    return [
        *first,
        ("database version", check_version),
        ("database encoding", check_encoding),
        ("database settings", check_settings),
        ("database pooler", check_pooler),
        ("database rights", check_rights),
        ("migrations", check_migrations),
        ("database connections", check_connections),
        ("clock", check_clock),
        ("settings of hosts", check_settings_of_hosts),
        *([("database replica", check_replica)] if REPLICA in connections.settings else []),
    ]


def check_connection() -> CheckResults:
    """Check that the database of DATABASE_URL accepts a connection."""
    if problem := connection_problem():
        yield FAILED, f"The database does not answer ({problem}). {remedy(problem)}."
    else:
        yield OK, "The database answers."


def check_replica() -> CheckResults:
    """Check that the database of RESPONSES_REPLICA_DATABASE_URL is a standby that follows this database."""
    if problem := replica_problem():
        yield WARNING, problem
        return
    try:
        with connections[REPLICA].cursor() as cursor:
            cursor.execute(_REPLICA_SQL)
            is_standby, seconds = cursor.fetchone()
    except DatabaseError as error:
        yield WARNING, f"The replica refuses a query ({' '.join(str(error).split())}): pages read the primary."
        return
    if not is_standby:
        yield FAILED, NO_STANDBY
    elif replica.is_current():
        yield OK, "The replica has all that is committed."
    else:
        yield WARNING, f"The replica is {seconds:.0f} s behind: pages read the primary until it has caught up."


def check_version() -> CheckResults:
    """Check the version of Postgres against the oldest version that Django supports."""
    (text,) = _row("SHOW server_version")
    oldest = connection.features.minimum_database_version or (0,)
    if int(str(text).split(".")[0]) < oldest[0]:
        yield FAILED, f"Postgres is version {text}. Upgrade it to {oldest[0]} or later."
    else:
        yield OK, f"Postgres is version {text}."


def check_encoding() -> CheckResults:
    """Check that the database can hold every text."""
    (encoding,) = _row("SHOW server_encoding")
    # Psycopg returns bytes where the encoding is SQL_ASCII.
    if problem := encoding_problem(encoding.decode() if isinstance(encoding, bytes) else encoding):
        yield FAILED, f"{problem[:1].upper()}{problem[1:]}."
    else:
        yield OK, f"The encoding of the database is {encoding}."


def check_settings() -> CheckResults:
    """Name the settings that keep the WAL small, as the embedded Postgres has them, and that this Postgres lacks."""
    smaller = _row(_SETTINGS_SQL)
    if missing := [setting for setting, is_smaller in zip(RECOMMENDED, smaller, strict=True) if is_smaller]:
        yield WARNING, f"Postgres writes more WAL than necessary. Set {', '.join(missing)} in its configuration."
    else:
        yield OK, "Postgres has the settings that keep its WAL small."


def check_pooler() -> CheckResults:
    """Check that connections keep their sessions and that notifications arrive."""
    try:
        pooler.check()
    except CannotStart as error:
        yield FAILED, f"{str(error)[:1].upper()}{str(error)[1:]}."
    else:
        yield OK, "Connections keep their sessions, and notifications arrive."


def check_rights() -> CheckResults:
    """Check that the role may make tables and owns the tables that exist."""
    may_create, foreign, role, schema = _row(_RIGHTS_SQL)
    if not may_create:
        yield (
            FAILED,
            f"The role {role} may not create tables in the schema {schema}. Run: GRANT CREATE ON SCHEMA {schema} TO {role}",
        )
    elif foreign:
        names = ", ".join(foreign[:MAX_NAMES])
        yield FAILED, f"The role {role} does not own {len(foreign)} tables, such as {names}. Run: ALTER TABLE … OWNER TO {role}"
    else:
        yield OK, f"The role {role} owns its tables and may create others."


def check_migrations() -> CheckResults:
    """Check that all migrations are applied, and that the database is not of a later version of the server."""
    health = asyncio.run(DatabaseProbe().check())
    missing = health.missing_migrations
    if health.problem:
        yield FAILED, health.problem
    elif missing:
        yield FAILED, f"{len(missing)} migrations are not applied, such as {missing[0]}. Run {MANAGE} migrate."
    elif problem := later_version_problem():
        yield FAILED, problem
    else:
        yield OK, "All migrations are applied."


def check_connections() -> CheckResults:
    """Compare the connections of all processes at full load with `max_connections`."""
    try:
        allowed, used, workers = _row(_CONNECTIONS_SQL, WORKER_TIMEOUT_S, MAX_AHEAD_S)
    except ProgrammingError:
        yield SKIPPED, "The tables are missing."
        return
    options: Any = settings.DATABASES["default"]["OPTIONS"]
    each = options["pool"]["max_size"] + OWN_CONNECTIONS
    processes = max(int(workers), 1)
    sentence = f"{processes} web process{'es' * (processes > 1)} with up to {each} connections each, of {allowed} of Postgres"
    if processes * each > allowed:
        yield FAILED, f"{sentence}. Set max_connections of Postgres to {processes * each + 20} or more, or run fewer processes."
    elif used > 0.8 * allowed:
        yield WARNING, f"{used} of {allowed} connections of Postgres are in use. Find the clients in pg_stat_activity."
    else:
        yield OK, f"{sentence}; {used} are in use."


def check_clock() -> CheckResults:
    """Compare the clock of this host with the clock of Postgres."""
    difference_s = shared_resources.clock_difference_s()
    if abs(difference_s) > shared_resources.MAX_CLOCK_DIFFERENCE_S:
        yield (
            FAILED,
            f"The clock of this host differs from the clock of Postgres by {difference_s:+.0f} s. Run NTP on both hosts.",
        )
    else:
        yield OK, f"The clocks of this host and of Postgres differ by {abs(difference_s):.1f} s."


def check_settings_of_hosts() -> CheckResults:
    """Compare the settings that all processes of the database need alike with those of the processes that run."""
    try:
        problems = list(shared_resources.setting_differences())
    except DatabaseError:
        yield SKIPPED, "The tables are missing."
        return
    yield from ((WARNING, problem) for problem in problems)
    if not problems:
        yield OK, "No process that runs has other values of the settings that all hosts need alike."


def _row(sql: str, *parameters: object) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)  # type: ignore[arg-type]
        row: tuple[Any, ...] = cursor.fetchone()
    return row
