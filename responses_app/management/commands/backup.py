"""`manage.py backup DIR`: writes a backup while the server runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import CommandError, CommandParser

from responses_app.management.base import DatabaseCommand
from responses_app.server.backup import embedded
from responses_app.server.backup.manifest import BackupError
from responses_app.server.backup.writing import has_secret_file, write_backup
from responses_app.store import audit_log
from responses_app.store.database_problems import NO_TABLES, describe_driver_error


class Command(DatabaseCommand):
    """Command `backup`."""

    help = "Write database, stored files and secret files into a new folder, with a manifest of checksums. The server may run."
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument("folder", metavar="DIR", type=Path, help="new folder of the backup")

    def handle(self, *_args: Any, folder: Path, **_options: Any) -> None:
        """Run the command."""
        try:
            with embedded.exit_on_signals(), embedded.database(needs_stopped_server=False):
                manifest = write_backup(folder.resolve())
                audit_log.record(audit_log.command(), "backup", str(folder.resolve()))
        except psycopg.errors.UndefinedTable as error:
            raise CommandError(f"{NO_TABLES}. Message of Postgres: {error.diag.message_primary}") from error
        except psycopg.Error as error:
            raise CommandError(describe_driver_error(error)) from error
        except BackupError as error:
            raise CommandError(str(error).strip()) from error
        except OSError as error:
            raise CommandError(f"no backup was made: {error}. Name a new folder with enough space for all files.") from error
        rows = ", ".join(f"{count} {name}" for name, count in manifest.rows.items())
        self.stdout.write(f"{folder}: {len(manifest.files)} files, {manifest.total_bytes:,} bytes; {rows}.")
        if manifest.missing:
            self.stdout.write(
                f"WARNING: the storage has no bytes of {len(manifest.missing)} files, such as {manifest.missing[0]}."
            )
        if has_secret_file():
            self.stdout.write(
                "WARNING: the folder contains the secret key and all texts in clear. Encrypt it, and let nobody read it."
            )
        else:
            self.stdout.write(
                "WARNING: SECRET_KEY is not in the backup, as it is set by the environment. Keep it at another place."
            )
