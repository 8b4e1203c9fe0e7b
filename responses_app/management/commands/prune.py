"""`manage.py prune`: deletes data older than the retention period, while the server runs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from responses_app.management.arguments import parse_seconds
from responses_app.management.base import DatabaseCommand
from responses_app.management.progress import ProgressLine
from responses_app.store import audit_log, refused_requests, webhooks
from responses_app.store.cluster.clock import database_time
from responses_app.store.content import approvals, orphans
from responses_app.store.files import files
from responses_app.store.log.retention import TEMPORARY, overdue, prune
from responses_app.utils.durations import describe_duration, parse_duration

WHAT = {
    "deltas": "delete the deltas of responses that ended longer ago than this; GET still works, a replay of the stream does not",
    "responses": "delete responses that ended longer ago than this; later responses and conversations keep the items they need",
    "temporary": "delete background responses with store: false that ended longer ago than this",
    "items": "items that were taken out of their last conversation longer ago than this, and that no response needs",
    "files": "files that were uploaded longer ago than this, besides files that have expired",
    "deliveries": "webhook deliveries of responses that ended longer ago than this",
    "audit": "entries of the audit log that are older than this",
}
PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class Part:
    """Kind of data: the function that counts what is due, and the function that deletes it and yields the size of each batch."""

    name: str
    count: Callable[[], int]
    delete: Callable[[], Iterator[int]]


class Command(DatabaseCommand):
    """Command `prune`."""

    help = "Delete data that is older than its retention period. Ages: 7d, 12h, 30m, 45s or off. Safe while the server runs."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        keep = settings.RESPONSES_KEEP_RESPONSES
        defaults = {
            "deltas": settings.RESPONSES_KEEP_DELTAS,
            "responses": keep,
            "temporary": TEMPORARY,
            "items": timedelta(0) if settings.RESPONSES_DELETE_CONVERSATION_ITEMS else keep,
            "files": settings.RESPONSES_KEEP_FILES,
            "deliveries": settings.RESPONSES_KEEP_WEBHOOK_DELIVERIES,
            "audit": settings.RESPONSES_KEEP_AUDIT,
        }
        for name, what in WHAT.items():
            default = defaults[name]
            shown = describe_duration(default) if default is not None else "off"
            parser.add_argument(f"--{name}", type=_age, metavar="AGE", default=default, help=f"{what} (default: {shown})")
        parser.add_argument("--dry-run", action="store_true", help="only count what would be deleted")
        parser.add_argument(
            "--pause", type=parse_seconds, metavar="SECONDS", default=PAUSE, help="pause between batches (default: %(default)s)"
        )

    def handle(self, *_args: Any, dry_run: bool, pause: float, **options: Any) -> None:
        """Run the command."""
        now = database_time()
        ages: dict[str, timedelta | None] = {name: options[name] for name in WHAT}
        if not dry_run:
            shown_ages = ", ".join(f"{name} {describe_duration(age)}" for name, age in ages.items() if age is not None)
            audit_log.record(audit_log.command(), "prune", shown_ages)
        for name in WHAT:
            if ages[name] is None and name != "files":
                self.stdout.write(f"{name}: kept, no age given")
        for part in _parts(now, ages):
            due = part.count()
            if dry_run:
                # The histories, which may need the items, are not read.
                at_most = "up to " if part.name == "items" else ""
                self.stdout.write(f"{part.name}: {at_most}{due} would be deleted")
            else:
                self._delete(part, due, pause)

    def _delete(self, part: Part, due: int, pause: float) -> None:
        progress = ProgressLine(self.stdout, part.name, due)
        for size in part.delete():
            progress.add(size)
            time.sleep(pause)
        progress.end(f"{part.name}: {progress.done:,} deleted")


def _parts(now: datetime, ages: dict[str, timedelta | None]) -> Iterator[Part]:
    """Yield the parts with an age, in the order of the deletion."""
    # Deltas last: those of responses that are deleted too need not be taken out of their logs.
    for name in ("responses", "temporary", "deltas"):
        if (age := ages[name]) is not None:
            yield Part(name, partial(overdue, name, now - age), partial(prune, name, now - age))
    if (age := ages["responses"]) is not None:
        yield Part("approvals", approvals.overdue(now - age).count, partial(approvals.prune, now - age))
    refused = ages["responses"]
    yield Part("refused requests", refused_requests.overdue(now, refused).count, partial(refused_requests.prune, now, refused))
    if (age := ages["items"]) is not None:
        yield Part("items", orphans.orphaned_before(now - age).count, partial(orphans.prune, now - age))
    due = files.overdue(now, ages["files"])
    yield Part("files", due.count, partial(files.delete_all, due))
    if (age := ages["deliveries"]) is not None:
        yield Part("deliveries", webhooks.overdue(now - age).count, partial(webhooks.prune, now - age))
    if (age := ages["audit"]) is not None:
        yield Part("audit", audit_log.overdue(now - age).count, partial(audit_log.prune, now, age))


def _age(text: str) -> timedelta | None:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be {error}") from None
