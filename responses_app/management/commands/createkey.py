"""`manage.py createkey NAME`: makes an API key and prints it, this once."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from responses_app.models import MOST_AT_A_TIME, MOST_REQUESTS, ApiKey


class Command(BaseCommand):
    help = "Make an API key. It is printed once and kept as a hash only."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what the key is for")
        parser.add_argument("--project", help="keys of one project see the same responses (default: the name)")
        parser.add_argument(
            "--requests-per-minute", type=_upto(MOST_REQUESTS), metavar="N", help="requests to a model (default: any number)"
        )
        parser.add_argument(
            "--at-a-time", type=_upto(MOST_AT_A_TIME), metavar="N", help="responses that have not ended (default: any number)"
        )
        parser.add_argument(
            "--model", action="append", default=[], help="it may ask this model and no other; may be said several times"
        )

    def handle(self, *_args: Any, name: str, project: str | None, model: list[str], **limits: Any) -> None:
        told = {field: limits[field] for field in ("requests_per_minute", "at_a_time")}
        _, secret = ApiKey.make(name, project, None, **told, allowed_models=model)
        self.stdout.write(secret)


def _upto(most: int) -> Any:
    def whole(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
            raise ArgumentTypeError(f"a whole number from 1 to {most}, not {text!r}")
        return int(text)

    return whole
