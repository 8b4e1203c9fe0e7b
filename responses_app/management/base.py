"""Base of the commands that use the database."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from responses_app.store.database_problems import describe_database_error, unreachable_problem


class DatabaseCommand(BaseCommand):
    """Command that ends with a sentence where the database is away, too old or without tables."""

    # False for commands that also do something without a database, or start one.
    needs_database: ClassVar[bool] = True
    # The checks import all pages, which takes longer than the command; `check` and `migrate` run them.
    requires_system_checks: list[str] = []  # noqa: RUF012 (so declared by Django)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command. Raises CommandError for a database that cannot be used, also in a project of `startproject`."""
        # Before the pool, which waits and hides the reason.
        if self.needs_database and (problem := unreachable_problem()):
            raise CommandError(problem)
        try:
            return super().execute(*args, **options)
        except DatabaseError as error:
            if (problem := describe_database_error(error)) is None:
                raise
            raise CommandError(problem) from error


def check_server_url(url: str) -> None:
    """Check the value of an option `--url`. Raises CommandError for another scheme, no host or a wrong port."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise CommandError("--url must be like https://verbatim.example.com or http://127.0.0.1:8000")
