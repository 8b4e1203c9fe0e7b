"""`manage.py prune`: lets go what has been kept long enough, while the server serves."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from responses_app.age import age
from responses_app.store.retention import TEMPORARY, overdue, prune

WHAT = {
    "deltas": "the deltas of logs that ended longer ago than this; GET still answers as before, a replay no more",
    "responses": "responses that ended longer ago than this; descendants and conversations keep the items they need",
    "temporary": "background responses of store:false that ended longer ago than this",
}
PAUSE = 0.1


class Command(BaseCommand):
    help = "Erase what is older than it is to be kept. Ages are written as 7d, 12h, 30m or 45s, or off; safe while serving."

    def add_arguments(self, parser: CommandParser) -> None:
        defaults = {
            "deltas": settings.RESPONSES_KEEP_DELTAS,
            "responses": settings.RESPONSES_KEEP_RESPONSES,
            "temporary": TEMPORARY,
        }
        for name, what in WHAT.items():
            default = defaults[name]
            shown = default if default is not None else "off"
            parser.add_argument(f"--{name}", type=_age, metavar="AGE", default=default, help=f"{what} (default: {shown})")
        parser.add_argument("--dry-run", action="store_true", help="count only")
        parser.add_argument(
            "--pause", type=float, metavar="SECONDS", default=PAUSE, help="between batches (default: %(default)s)"
        )

    def handle(self, *_args: Any, dry_run: bool, pause: float, **options: Any) -> None:
        now = datetime.now(UTC)
        for name in WHAT:
            limit: timedelta | None = options[name]
            if limit is None:
                self.stdout.write(f"{name}: kept")
            elif dry_run:
                self.stdout.write(f"{name}: {overdue(name, now - limit)} would go")
            else:
                self.stdout.write(f"{name}: {self._prune(name, now - limit, pause)} gone")

    def _prune(self, name: str, before: datetime, pause: float) -> int:
        total = 0
        for done in prune(name, before):
            total += done
            self.stdout.write(f"{name}: {total} ...")
            time.sleep(pause)
        return total


def _age(text: str) -> timedelta | None:
    try:
        return age(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be {error}") from None
