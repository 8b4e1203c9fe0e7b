"""Check and restore of a backup: nothing is changed before all checksums are compared, and the tables are replaced in a transaction."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psycopg
from django.core.files.base import File as StorageFile

from responses_app.installation.data_dir import data_dir, make_folder
from responses_app.server.backup import programs
from responses_app.server.backup.manifest import (
    DUMP,
    FILES,
    KEYS,
    SECRET_FILES,
    BackupError,
    Manifest,
    check_files,
    secret_key_id,
)
from responses_app.server.backup.writing import count_rows
from responses_app.store.cluster.leases import MAX_AHEAD_S, WORKER_TIMEOUT_S
from responses_app.store.db import session_parameters
from responses_app.store.files import storage
from responses_app.store.health import APP, is_later

# Tables whose rows make a database one that is in use.
IN_USE: Final = ("responses", "conversations", "files", "API keys", "accounts")
# Entries of a dump that belong to the database and not to the server: the role may not make extensions.
LEFT_OUT: Final = (" EXTENSION ", " SCHEMA ", "COMMENT - EXTENSION", "COMMENT - SCHEMA")
# Processes that run, and those whose heartbeat lies too far in the future.
_WORKERS_SQL: Final = """
SELECT count(*) FILTER (WHERE heartbeat_at <= clock_timestamp() + make_interval(secs => %(ahead)s)),
  count(*) FILTER (WHERE heartbeat_at > clock_timestamp() + make_interval(secs => %(ahead)s))
FROM responses_app_worker WHERE heartbeat_at > clock_timestamp() - make_interval(secs => %(dead)s)
"""
# Removes the tables and functions of the server, in the transaction of the restore.
_DROP_SQL: Final = r"""
DO $$ DECLARE thing text; BEGIN
  FOR thing IN
    SELECT format('TABLE %s', c.oid::regclass) FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND c.relname ~ '^(responses_app|auth|django|account|socialaccount)_'
    UNION ALL
    SELECT format('ROUTINE %s', p.oid::regprocedure) FROM pg_proc p
    WHERE p.pronamespace = current_schema()::regnamespace AND p.proname ~ '^responses_app_'
  LOOP
    EXECUTE format('DROP %s CASCADE', thing);
  END LOOP;
END $$;
"""


def check_backup(folder: Path) -> Manifest:
    """Compare a backup with the manifest, and read the contents of the dump. Raises BackupError. Nothing is written."""
    manifest = Manifest.read(folder)
    check_files(folder, manifest)
    _entries(folder, manifest)
    newest = manifest.migrations.get(APP, "")
    if is_later(newest):
        raise BackupError(f"The backup is of a later version of the server (migration {newest}). Restore it with that version.")
    return manifest


def restore(folder: Path, manifest: Manifest, *, overwrite: bool) -> dict[str, int]:
    """Restore a backup that `check_backup` has read, into DATABASE_URL, the storage and the data folder. Return the counts of rows.

    Raises BackupError before any change if the database is in use, unless `overwrite`, or if a server runs on it.
    """
    with psycopg.connect(**session_parameters(), autocommit=True) as link:
        _check_target(link, overwrite)
    if problem := secret_key_problem(folder, manifest):
        raise BackupError(problem)
    make_folder(data_dir())
    _restore_files(folder, manifest)
    _restore_database(folder, manifest)
    _restore_secrets(folder)
    with psycopg.connect(**session_parameters(), autocommit=True) as link:
        rows = count_rows(link)
    if rows != manifest.rows:
        raise BackupError(f"The database has other rows than the manifest: {rows}. Do not use it; restore again.")
    return rows


def _check_target(link: psycopg.Connection[Any], overwrite: bool) -> None:
    if not _has_table(link, "responses_app_worker"):
        return
    workers, ahead = _count_workers(link)
    if ahead and not workers:
        # The clock of the database may have been set back this second: a process that runs renews its heartbeat in this time.
        time.sleep(WORKER_TIMEOUT_S)
        workers, _ = _count_workers(link)
    if workers:
        raise BackupError(f"{workers} processes of a server use the database. Stop the server first.")
    counts = count_rows(link)
    in_use = [f"{counts[name]} {name}" for name in IN_USE if counts[name]]
    if in_use and not overwrite:
        raise BackupError(f"The database is not empty: {', '.join(in_use)}. --overwrite replaces all of it.")


def _count_workers(link: psycopg.Connection[Any]) -> tuple[int, int]:
    ((workers, ahead),) = link.execute(_WORKERS_SQL, {"dead": WORKER_TIMEOUT_S, "ahead": MAX_AHEAD_S}).fetchall()
    return workers, ahead


def secret_key_problem(folder: Path, manifest: Manifest) -> str | None:
    """Return a sentence if SECRET_KEY of the environment cannot read the backup, else None. The key of the data folder is replaced."""
    if (folder / KEYS / SECRET_FILES[0]).exists() or secret_key_id() == manifest.secret_key_id:
        return None
    return "SECRET_KEY is not that of the backup, which has no key file. Set SECRET_KEY to the key of that server."


def _restore_files(folder: Path, manifest: Manifest) -> None:
    """Copy the files into the storage, before the rows with the names."""
    for file in manifest.files:
        if not file.path.startswith(f"{FILES}/"):
            continue
        name, target = file.path.removeprefix(f"{FILES}/"), storage.storage()
        if target.exists(name):
            target.delete(name)
        with (folder / file.path).open("rb") as stream:
            stored = target.save(name, StorageFile(stream, name=name))
        if stored != name:
            target.delete(stored)
            raise BackupError(f"The storage has stored {name} under another name. Use an empty storage.")


def _restore_database(folder: Path, manifest: Manifest) -> None:
    """Replace the tables by the dump, in a single transaction."""
    entries, (conninfo, environ) = _entries(folder, manifest), programs.connection_arguments()
    major = _major(manifest)
    with tempfile.TemporaryDirectory() as temporary:
        contents, drop = Path(temporary, "contents"), Path(temporary, "drop.sql")
        contents.write_text("\n".join(entries) + "\n")
        drop.write_text(f"BEGIN;\n{_DROP_SQL}")
        reading: list[str | Path] = [programs.find_program("pg_restore", major), "--no-owner", "--no-acl", "--file=-"]
        reading += [f"--use-list={contents}", folder / DUMP]
        writing: list[str | Path] = [programs.find_program("psql", major), "--no-psqlrc", "--quiet"]
        writing += ["--set=ON_ERROR_STOP=1", f"--dbname={conninfo}", "--output=/dev/null", f"--file={drop}", "--file=-"]
        with (
            tempfile.TemporaryFile("w+") as messages,
            subprocess.Popen(reading, stdout=subprocess.PIPE, stderr=messages) as reader,
            subprocess.Popen(writing, stdin=subprocess.PIPE, stderr=messages, env=environ) as writer,
        ):
            _copy_sql(reader, writer)
            if reader.wait() or writer.wait():
                messages.seek(0)
                raise BackupError(programs.failure("restore of the database", messages.read()))


def _copy_sql(reader: subprocess.Popen[bytes], writer: subprocess.Popen[bytes]) -> None:
    """Copy the output of `pg_restore` to `psql`, and commit if `pg_restore` has succeeded: its end alone ends the input of `psql` too."""
    assert reader.stdout is not None  # noqa: S101 - pipes are set
    assert writer.stdin is not None  # noqa: S101
    try:
        shutil.copyfileobj(reader.stdout, writer.stdin)
        if reader.wait() == 0:
            writer.stdin.write(b"COMMIT;\n")
        writer.stdin.close()
    except BrokenPipeError:  # An error has ended psql.
        reader.stdout.close()
        with suppress(BrokenPipeError):
            writer.stdin.close()


def _restore_secrets(folder: Path) -> None:
    """Copy the secret files into the data folder, and rename files of other contents there."""
    for name in SECRET_FILES:
        source, target = folder / KEYS / name, data_dir() / name
        if not source.exists():
            continue
        # Complete before it gets its name, which a full disk may prevent.
        new = target.with_name(f"{name}.new")
        new.touch(0o600)
        new.write_bytes(source.read_bytes())
        if target.exists() and target.read_bytes() != source.read_bytes():
            target.replace(target.with_name(f"{name}.before-restore"))
        new.replace(target)


def _entries(folder: Path, manifest: Manifest) -> list[str]:
    """Return the entries of the dump to restore. Raises BackupError if the dump cannot be read."""
    _, environ = programs.connection_arguments()
    program = programs.find_program("pg_restore", _major(manifest))
    lines = programs.run([program, "--list", folder / DUMP], environ).splitlines()
    return [line for line in lines if not line.startswith(";") and not any(kind in line for kind in LEFT_OUT)]


def _major(manifest: Manifest) -> int:
    return int(manifest.postgres.split(".")[0])


def _has_table(link: psycopg.Connection[Any], name: str) -> bool:
    return bool(link.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchall()[0][0])
