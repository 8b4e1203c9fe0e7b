"""Sign-in link of a running server, made without `manage.py signin`, whose process takes two seconds of CPU to start."""

from __future__ import annotations

from datetime import UTC

import psycopg
from django.contrib.auth.models import User
from django.test import override_settings

from responses_app.installation.database_url import superuser_url
from responses_app.web.accounts import sign_in
from tests.support.server.serve_command import Server

INSERT = """INSERT INTO auth_user
  (username, password, is_superuser, is_staff, is_active, first_name, last_name, email, date_joined)
  VALUES (%s, '!', true, true, true, '', '', '', now()) ON CONFLICT DO NOTHING"""
SELECT = "SELECT id, last_login, password FROM auth_user WHERE username = %s"


def sign_in_link(server: Server) -> str:
    """Return a link that signs the operator in once, at a server with the embedded Postgres."""
    with psycopg.connect(superuser_url(server.folder), autocommit=True) as connection:
        connection.execute(INSERT, [sign_in.OPERATOR])
        row = connection.execute(SELECT, [sign_in.OPERATOR]).fetchone()
    assert row
    pk, last_login, password = row
    operator = User(pk=pk, last_login=last_login.astimezone(UTC) if last_login else None, password=password)
    with override_settings(SECRET_KEY=(server.folder / "secret_key").read_text().strip()):
        return f"{server.url}{sign_in.link(operator)}"
