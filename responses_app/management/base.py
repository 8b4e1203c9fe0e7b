"""Base of the commands that use the database."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from responses_app.store.database_problems import describe_database_error, unreachable_problem


class DatabaseCommand(BaseCommand):
    """Command that ends with a sentence where the database is away, too old or without tables."""

    # False for commands that also do something without a database, or start one.
    needs_database: ClassVar[bool] = True

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
