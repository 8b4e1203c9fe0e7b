"""Sign-in link of a running server, made without `manage.py signin`, whose process takes two seconds of CPU to start."""

from __future__ import annotations

from datetime import UTC

import psycopg
from django.core import signing

from responses_app.installation.database_url import superuser_url
from responses_app.web.accounts.sign_in import OPERATOR, SALT
from tests.support.server.serve_command import Server

INSERT = """INSERT INTO auth_user
  (username, password, is_superuser, is_staff, is_active, first_name, last_name, email, date_joined)
  VALUES (%s, '!', true, true, true, '', '', '', now()) ON CONFLICT DO NOTHING"""


def sign_in_link(server: Server) -> str:
    """Return a link that signs the operator in once, at a server with the embedded Postgres."""
    with psycopg.connect(superuser_url(server.folder), autocommit=True) as connection:
        connection.execute(INSERT, [OPERATOR])
        row = connection.execute("SELECT id, last_login FROM auth_user WHERE username = %s", [OPERATOR]).fetchone()
    assert row
    pk, last_login = row
    stamp = last_login.astimezone(UTC).isoformat() if last_login else ""
    secret = (server.folder / "secret_key").read_text().strip()
    return f"{server.url}/sign-in/{signing.dumps([pk, stamp], key=secret, salt=SALT)}"
