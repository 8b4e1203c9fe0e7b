"""Wrong values of environment variables: each is refused with a sentence that names the variable."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from project.env import check_database_url, check_time_zone, database, envint, envstr
from project.pool import POOL, TIME_LIMITS

URL = "postgresql://user:word@127.0.0.1"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://host/name", "must begin with postgresql://, not 'mysql'"),
        (f"{URL}:99999/name", "Port out of range"),
        ("postgresql://user:w[rd@127.0.0.1/name", "special characters of the password must be quoted"),
        (f"{URL}/name?sslmod=require", "no connection option 'sslmod'"),
    ],
)
def test_a_wrong_database_url_is_named(url: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^DATABASE_URL.*{sentence}"):
        check_database_url("DATABASE_URL", url)


def test_options_of_postgres_are_accepted() -> None:
    url = f"{URL}/name?host=%2Frun&port=5432&sslmode=require&application_name=verbatim"
    assert check_database_url("DATABASE_URL", url) == url


def test_connection_to_a_host_that_has_vanished_ends_unless_the_url_says_otherwise() -> None:
    options = database(f"{URL}/name?keepalives_idle=60")["OPTIONS"]
    assert options == {**TIME_LIMITS, "keepalives_idle": "60", "pool": POOL}


@pytest.mark.parametrize("name", ["Mars/Phobos", "../etc/passwd", "/etc/localtime"])
def test_an_unknown_time_zone_is_named(name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^TZ must be the name of a time zone"):
        check_time_zone(name)


def test_numbers_and_files_that_cannot_be_meant_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, sentence in (("9" * 20, "at most 2147483647"), ("-1", "at least 0"), ("5s", "a whole number, not '5s'")):
        monkeypatch.setenv("RESPONSES_HEARTBEAT", value)
        with pytest.raises(ImproperlyConfigured, match=f"^RESPONSES_HEARTBEAT must be {sentence}"):
            envint("RESPONSES_HEARTBEAT", 10)
    secret = tmp_path / "secret"
    secret.write_text("\n")
    monkeypatch.setenv("SECRET_KEY_FILE", str(secret))
    with pytest.raises(ImproperlyConfigured, match=r"^SECRET_KEY_FILE: .*is empty"):
        envstr("SECRET_KEY")
