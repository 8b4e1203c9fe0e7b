"""`manage.py prune`: deletes data older than the retention period, while the server runs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from responses_app.store import audit_log
from responses_app.store.content import approvals, orphans
from responses_app.store.files import files
from responses_app.store.log.retention import TEMPORARY, overdue, prune
from responses_app.utils.durations import parse_duration

WHAT = {
    "deltas": "delete the deltas of responses that ended longer ago than this; GET still works, a replay of the stream does not",
    "responses": "delete responses that ended longer ago than this; later responses and conversations keep the items they need",
    "temporary": "delete background responses with store: false that ended longer ago than this",
}
PAUSE = 0.1


class Command(BaseCommand):
    """Command `prune`."""

    help = "Delete data that is older than its retention period. Ages: 7d, 12h, 30m, 45s or off. Safe while the server runs."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        defaults = {
            "deltas": settings.RESPONSES_KEEP_DELTAS,
            "responses": settings.RESPONSES_KEEP_RESPONSES,
            "temporary": TEMPORARY,
        }
        for name, what in WHAT.items():
            default = defaults[name]
            shown = default if default is not None else "off"
            parser.add_argument(f"--{name}", type=_age, metavar="AGE", default=default, help=f"{what} (default: {shown})")
        default = timedelta(0) if settings.RESPONSES_DELETE_CONVERSATION_ITEMS else settings.RESPONSES_KEEP_RESPONSES
        what = "items that were taken out of their last conversation longer ago than this, and that no response needs"
        shown = default if default is not None else "off"
        parser.add_argument("--items", type=_age, metavar="AGE", default=default, help=f"{what} (default: {shown})")
        default = settings.RESPONSES_KEEP_FILES
        what = "files that were uploaded longer ago than this, besides files that have expired"
        shown = default if default is not None else "off"
        parser.add_argument("--files", type=_age, metavar="AGE", default=default, help=f"{what} (default: {shown})")
        default = settings.RESPONSES_KEEP_AUDIT
        what = "entries of the audit log that are older than this"
        shown = default if default is not None else "off"
        parser.add_argument("--audit", type=_age, metavar="AGE", default=default, help=f"{what} (default: {shown})")
        parser.add_argument("--dry-run", action="store_true", help="only count what would be deleted")
        parser.add_argument(
            "--pause", type=float, metavar="SECONDS", default=PAUSE, help="pause between batches (default: %(default)s)"
        )

    def handle(self, *_args: Any, dry_run: bool, pause: float, **options: Any) -> None:
        """Run the command."""
        now = datetime.now(UTC)
        for name in WHAT:
            limit: timedelta | None = options[name]
            if limit is None:
                self.stdout.write(f"{name}: kept, no age given")
            elif dry_run:
                self.stdout.write(f"{name}: {overdue(name, now - limit)} would be deleted")
            else:
                self.stdout.write(f"{name}: {self._prune(name, prune(name, now - limit), pause)} deleted")
        if options["responses"] is not None and not dry_run:
            self._prune("approvals", approvals.prune(now - options["responses"]), pause)
        self._orphans(now, options["items"], dry_run, pause)
        self._files(now, options["files"], dry_run, pause)
        if not dry_run:
            ages = ", ".join(
                f"{name} {options[name]}" for name in (*WHAT, "items", "files", "audit") if options[name] is not None
            )
            audit_log.record(audit_log.command(), "prune", ages)
            self.stdout.write(f"audit: {self._prune('audit', audit_log.prune(now, options['audit']), pause)} deleted")

    def _orphans(self, now: datetime, limit: timedelta | None, dry_run: bool, pause: float) -> None:
        if limit is None:
            self.stdout.write("items: kept, no age given")
        elif dry_run:
            self.stdout.write(f"items: up to {orphans.orphaned_before(now - limit).count()} would be deleted")
        else:
            self.stdout.write(f"items: {self._prune('items', orphans.prune(now - limit), pause)} deleted")

    def _files(self, now: datetime, limit: timedelta | None, dry_run: bool, pause: float) -> None:
        due = files.overdue(now, limit)
        if dry_run:
            self.stdout.write(f"files: {due.count()} would be deleted")
        else:
            self.stdout.write(f"files: {self._prune('files', files.delete_all(due), pause)} deleted")

    def _prune(self, name: str, steps: Iterator[int], pause: float) -> int:
        total = 0
        for done in steps:
            total += done
            self.stdout.write(f"{name}: {total} deleted so far")
            time.sleep(pause)
        return total


def _age(text: str) -> timedelta | None:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be {error}") from None
