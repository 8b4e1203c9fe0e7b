"""`manage.py createkey NAME`: creates an API key and prints the key once."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from responses_app.models import MAX_CONCURRENT, MAX_REQUESTS_PER_MINUTE, ApiKey


class Command(BaseCommand):
    """Command `createkey`."""

    help = "Create an API key and print it. It can’t be shown again: only a hash is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument("name", help="name of the key, such as CI")
        parser.add_argument("--project", help="keys in the same project share responses (default: the name)")
        parser.add_argument(
            "--requests-per-minute",
            type=_upto(MAX_REQUESTS_PER_MINUTE),
            metavar="N",
            help="limit on requests to models (default: no limit)",
        )
        parser.add_argument(
            "--at-a-time",
            dest="max_concurrent",
            type=_upto(MAX_CONCURRENT),
            metavar="N",
            help="limit on concurrent responses (default: no limit)",
        )
        parser.add_argument(
            "--model", action="append", default=[], help="allow only this model; repeat to allow several (default: all models)"
        )

    def handle(self, *_args: Any, name: str, project: str | None, model: list[str], **limits: Any) -> None:
        """Run the command."""
        limits_given = {field: limits[field] for field in ("requests_per_minute", "max_concurrent")}
        _, secret = ApiKey.make(name, project, None, **limits_given, allowed_models=model)
        self.stdout.write(secret)


def _upto(most: int) -> Any:
    def whole(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
            raise ArgumentTypeError(f"must be a whole number from 1 to {most}, not {text!r}")
        return int(text)

    return whole
