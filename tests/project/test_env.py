"""Wrong values of environment variables: each is refused with a sentence that names the variable."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.utils import ConnectionHandler

from project.env import check_database_url, check_time_zone, check_token, database, envint, envstr
from project.pool import POOL, TIME_LIMITS

URL = "postgresql://user:word@127.0.0.1"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://host/name", "must begin with postgresql://, not 'mysql'"),
        (f"{URL}:99999/name", "has a wrong host or port"),
        ("postgresql://user:w[rd@127.0.0.1/name", "special characters in the password, which must be quoted"),
        (URL, "names no database: add its name"),
        (f"{URL}/?host=%2Frun", "names no database: add its name"),
        (f"{URL}/name?sslmod=require", "no connection option 'sslmod'"),
        (f"{URL}/name?connect_timeout=5s", "connect_timeout must be a whole number of seconds, not '5s'"),
    ],
)
def test_a_wrong_database_url_is_named(url: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^DATABASE_URL.*{sentence}"):
        check_database_url("DATABASE_URL", url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:hidden#word@127.0.0.1/name",
        "postgresql://user:hidden/word@127.0.0.1/name",
        "user:hidden@127.0.0.1/name",
        "host=127.0.0.1 password=hidden",
        "user:hidden://127.0.0.1/name",
    ],
)
def test_a_wrong_database_url_shows_no_part_of_the_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        check_database_url("DATABASE_URL", url)
    assert "hidden" not in str(refused.value)


def test_options_of_postgres_are_accepted() -> None:
    url = f"{URL}/name?host=%2Frun&port=5432&sslmode=require&application_name=verbatim"
    assert check_database_url("DATABASE_URL", url) == url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{URL}/name", {"dbname": "name"}),
        (f"{URL}?dbname=name", {"dbname": "name"}),
        (f"{URL}?service=own", {"service": "own"}),
    ],
)
def test_database_is_named_by_path_name_or_service(url: str, expected: dict[str, str]) -> None:
    params = ConnectionHandler({"default": database(url)})["default"].get_connection_params()
    assert {name: params[name] for name in ("dbname", "service") if params.get(name)} == expected


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


@pytest.mark.parametrize(
    "token", ["clé-of-sixteen-letters", "sk-1234567890123 ", " sk-1234567890123", "sk-1234567890\n123", "sk-…"]
)
def test_token_that_no_header_can_carry_is_refused_without_being_repeated(token: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME may contain letters, digits and signs of ASCII only") as refused:
        check_token("NAME", token)
    assert token.strip() not in str(refused.value)
    assert [check_token("NAME", text) for text in ("", "sk-1234567890123", "two words")] == [
        "",
        "sk-1234567890123",
        "two words",
    ]
