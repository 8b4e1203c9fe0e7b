"""`manage.py signin`: prints a link that signs somebody in, once."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from responses_app.web import sign_in


class Command(BaseCommand):
    help = f"Print a link that signs in once, within {sign_in.VALID_SECONDS // 60} minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", nargs="?", help="an account that exists (default: the operator)")
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="where the server is (default: %(default)s)")

    def handle(self, *_args: Any, username: str | None, url: str, **_options: Any) -> None:
        user = User.objects.filter(username=username).first() if username else sign_in.operator()
        if user is None:
            raise CommandError(f"There is no account {username!r}.")
        self.stdout.write(url.rstrip("/") + sign_in.link(user))
