"""`manage.py createkey NAME`: makes an API key and prints it, this once."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from responses_app.models import ApiKey


class Command(BaseCommand):
    help = "Make an API key. It is printed once and kept as a hash only."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what the key is for")
        parser.add_argument("--project", help="keys of one project see the same responses (default: the name)")

    def handle(self, *_args: Any, name: str, project: str | None, **_options: Any) -> None:
        _, secret = ApiKey.make(name, project)
        self.stdout.write(secret)
