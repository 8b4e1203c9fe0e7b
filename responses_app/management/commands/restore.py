"""`manage.py restore DIR`: checks a backup, and restores the database, the storage and the data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import CommandError, CommandParser

from responses_app.installation.data_dir import MANAGE, SERVE
from responses_app.management.base import DatabaseCommand
from responses_app.server.backup import embedded, restoring
from responses_app.server.backup.manifest import BackupError
from responses_app.store.database_problems import describe_driver_error

REMEDY = (
    "Make room if a disk is full, and restore again: files are copied first, and the tables are replaced in one transaction."
)


class Command(DatabaseCommand):
    """Command `restore`."""

    help = f"Restore a backup of {MANAGE} backup. The server must be stopped. With --check, only compare the backup with its manifest."
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument("folder", metavar="DIR", type=Path, help="folder of the backup")
        parser.add_argument("--check", action="store_true", help="compare all checksums and read the dump, and write nothing")
        parser.add_argument("--overwrite", action="store_true", help="replace a database that is not empty")

    def handle(self, *_args: Any, folder: Path, check: bool, overwrite: bool, **_options: Any) -> None:
        """Run the command."""
        folder = folder.resolve()
        try:
            manifest = restoring.check_backup(folder)
            if check:
                self.stdout.write(
                    f"The backup of {manifest.created_at} is complete: {len(manifest.files)} files are as written."
                )
                if problem := restoring.secret_key_problem(folder, manifest):
                    self.stderr.write(f"WARNING: {problem}")
                return
            with embedded.exit_on_signals(), embedded.database(needs_stopped_server=True):
                rows = restoring.restore(folder, manifest, overwrite=overwrite)
        except psycopg.Error as error:
            raise CommandError(describe_driver_error(error)) from error
        except BackupError as error:
            raise CommandError(str(error).strip()) from error
        except OSError as error:
            raise CommandError(f"the backup was not restored: {error}. {REMEDY}") from error
        self.stdout.write(f"Restored: {', '.join(f'{count} {name}' for name, count in rows.items())}.")
        self.stdout.write(f"Next: start the server. With an ASGI server other than {SERVE}, run {MANAGE} migrate before.")
