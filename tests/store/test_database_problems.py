"""Errors of the database that an operator can mend: each becomes a sentence that says what to do."""

from __future__ import annotations

import psycopg
import pytest
from django.db import DatabaseError, NotSupportedError, OperationalError, connection, transaction
from django.db.migrations.exceptions import MigrationSchemaMissing
from django.db.migrations.recorder import MigrationRecorder

from responses_app.store import database_problems
from responses_app.store.database_problems import describe_database_error, describe_driver_error, encoding_problem


def error_of(sql: str) -> DatabaseError:
    """Return the error of a statement that must fail."""
    with pytest.raises(DatabaseError) as raised, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)
    return raised.value


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("SELECT * FROM no_such_table", "run the command migrate"),
        ("SELECT no_such_column FROM responses_app_apikey", "run the command migrate"),
        ("CREATE TABLE information_schema.name (id int)", "ALTER DATABASE name OWNER TO role"),
        ("SET TRANSACTION READ ONLY; CREATE TABLE name (id int)", "name the primary in the place of a standby"),
        ("CREATE TABLE auth_user (id int)", "name an empty database in DATABASE_URL"),
        ("ALTER TABLE auth_user ADD COLUMN username text", "name an empty database in DATABASE_URL"),
        ("SELECT 1 / 0", None),
        ("SELEC 1", None),
    ],
)
def test_an_error_has_a_sentence_unless_the_statement_is_wrong(sql: str, sentence: str | None) -> None:
    described = describe_database_error(error_of(sql))
    assert (described is None) == (sentence is None)
    assert (sentence or "") in (described or "")


@pytest.mark.django_db
def test_a_read_only_database_without_tables_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = MigrationRecorder(connection)
    monkeypatch.setattr(recorder, "has_table", lambda: False)
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
    with pytest.raises(MigrationSchemaMissing) as raised:
        recorder.ensure_schema()
    assert "read-only" in (describe_database_error(raised.value) or "").partition("Message of Postgres")[0]


def test_old_versions_and_databases_that_are_away_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    described = describe_database_error(NotSupportedError("PostgreSQL 14 or later is required (found 12.2)."))
    assert described == "Postgres is too old: PostgreSQL 14 or later is required (found 12.2)."
    assert "OWNER TO role" in (describe_database_error(MigrationSchemaMissing("permission denied")) or "")
    monkeypatch.setattr(database_problems, "session_parameters", lambda: {"host": "127.0.0.1", "port": 1, "user": "u"})
    for url, remedy in (("", "start the server first"), ("postgresql://127.0.0.1:1/name", "correct DATABASE_URL")):
        monkeypatch.setenv("DATABASE_URL", url)
        described = describe_database_error(OperationalError("couldn't get a connection after 5.00 sec")) or ""
        assert described.startswith("the database does not answer (")
        assert "refused" in described
        assert remedy in described
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "mysite.settings")
    assert "correct DATABASES in the settings" in (describe_database_error(OperationalError("refused")) or "")


@pytest.mark.parametrize(("encoding", "is_usable"), [("UTF8", True), ("SQL_ASCII", False), ("LATIN1", False), (None, False)])
def test_a_database_needs_the_encoding_utf8(encoding: str | None, is_usable: bool) -> None:
    sentence = encoding_problem(encoding)
    assert (sentence is None) == is_usable
    assert is_usable or f"has the encoding {encoding}" in (sentence or "")


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("FATAL:  could not write init file: No space left on device", "Free space on the disk of Postgres"),
        *(
            (f"FATAL:  {reason}", "End other connections (pg_stat_activity")
            for reason in (
                "sorry, too many clients already",
                'too many connections for role "a"',
                "remaining connection slots are reserved for roles with the SUPERUSER attribute",
            )
        ),
        ("Connection refused", "Start Postgres, or correct DATABASE_URL"),
        ('FATAL:  password authentication failed for user "a"', "Correct the password in DATABASE_URL"),
        ("fe_sendauth: no password supplied", "Correct the password in DATABASE_URL"),
        ('FATAL:  database "none" does not exist', "Create it, or correct DATABASE_URL"),
    ],
)
def test_the_remedy_fits_the_reason(monkeypatch: pytest.MonkeyPatch, reason: str, remedy: str) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    sentence = describe_driver_error(psycopg.OperationalError(reason))
    assert sentence.startswith(f"the database does not answer ({' '.join(reason.split())}). {remedy}")
