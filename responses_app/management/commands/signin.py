"""`manage.py signin`: prints a sign-in link that works once."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

from django.core.management.base import CommandError, CommandParser

from responses_app.management.base import DatabaseCommand, check_server_url
from responses_app.store import audit_log
from responses_app.utils.user_model import User
from responses_app.web.accounts import sign_in


class Command(DatabaseCommand):
    """Command `signin`."""

    help = f"Print a one-time sign-in link. It expires after {sign_in.VALID_SECONDS // 60} minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument("username", nargs="?", help="existing account to sign in (default: the operator)")
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="base URL of the server (default: %(default)s)")

    def handle(self, *_args: Any, username: str | None, url: str, **_options: Any) -> None:
        """Run the command."""
        check_server_url(url)
        user = User.objects.filter(username=username).first() if username else sign_in.operator()
        if user is None:
            raise CommandError(f"No account is named {username!r}. Leave the name out to sign in as the operator.")
        audit_log.record(audit_log.command(), "sign-in.link", f"account {user.get_username()}")
        self.stdout.write(urljoin(url, sign_in.link(user)))
