"""`manage.py export --safety-identifier X FILE`: writes the responses of a person as JSON Lines."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import CommandError, CommandParser

from responses_app.management.base import DatabaseCommand
from responses_app.store import audit_log, person


class Command(DatabaseCommand):
    """Command `export`."""

    help = "Write the responses of a person, with their input items, into a new file as JSON Lines."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument("--safety-identifier", required=True, metavar="ID", help="safety_identifier of the requests")
        parser.add_argument("file", metavar="FILE", help="new file, with mode 0600")

    def handle(self, *_args: Any, safety_identifier: str, file: str, **_options: Any) -> None:
        """Run the command."""
        responses = person.responses_of(safety_identifier)
        if not (total := responses.count()):
            raise CommandError(f"No stored response has the safety_identifier {safety_identifier!r}.")
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise CommandError(f"{file} cannot be made: {error.strerror}. Name a new file.") from error
        count = 0
        with os.fdopen(descriptor, "wb") as out:
            for line in person.export_person(responses):
                out.write(line + b"\n")
                count += 1
        audit_log.record(audit_log.command(), "export", f"safety_identifier {safety_identifier}")
        self.stdout.write(f"{file}: {count} responses.")
        if count < total:
            self.stdout.write(f"{total - count} responses are running and were left out.")
