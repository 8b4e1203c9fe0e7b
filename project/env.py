"""Typed readers of environment variables. READ records every variable, so that a test can compare the docs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import cast
from urllib.parse import parse_qsl, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ImproperlyConfigured
from psycopg.pq import Conninfo

from project.pool import POOL, TIME_LIMITS
from responses_app.tools.http_headers import value_problem
from responses_app.utils.durations import parse_duration

MIN_TOKEN_LENGTH = 16
# Beyond, sums of seconds and of bytes overflow in libraries and in columns of Postgres.
MAX_NUMBER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Variable:
    """Environment variable of the settings, with the default as text."""

    name: str
    default: str


READ: dict[str, Variable] = {}


def envstr(name: str, default: str = "") -> str:
    """Read a text of the settings, as `read_variable`. Raises ImproperlyConfigured."""
    READ[name] = Variable(name, default)
    return read_variable(name, default)


def read_variable(name: str, default: str = "") -> str:
    """Read a text. A file named by `NAME_FILE` takes precedence, so that secrets can be mounted.

    Raises ImproperlyConfigured for a file that cannot be read or that is empty.
    """
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, default)
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{name}_FILE: {path} cannot be read ({error})") from None
    if not text:
        raise ImproperlyConfigured(f"{name}_FILE: {path} is empty: write the value into the file, or unset {name}_FILE")
    return text


def envbool(name: str, default: bool = False) -> bool:
    """Read a boolean: 1, true, yes, on, 0, false, no, off or empty. Raises ImproperlyConfigured."""
    value = envstr(name, str(default)).strip().lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"", "0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}")


def envint(name: str, default: int, minimum: int = 0, maximum: int = MAX_NUMBER) -> int:
    """Read a whole number from `minimum` to `maximum`. Raises ImproperlyConfigured."""
    value = envstr(name, str(default))
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}") from None
    if number < minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum}, not {number}")
    if number > maximum:
        raise ImproperlyConfigured(f"{name} must be at most {maximum}, not {number}")
    return number


def envshare(name: str, default: float) -> float:
    """Read a number from 0 to 1. Raises ImproperlyConfigured."""
    value = envstr(name, str(default))
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ImproperlyConfigured(f"{name} must be a number from 0 to 1, not {value!r}")
    return number


def envduration(name: str, default: str, unit: str = "") -> timedelta | None:
    """Read a duration like `7d`; None if empty or `off`. A number alone is in `unit`. Raises ImproperlyConfigured."""
    value = envstr(name, default).strip()
    try:
        return parse_duration(value + unit if value.isdecimal() else value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be {error}") from None


def envlist(name: str, default: str = "") -> list[str]:
    """Read a list, separated by commas or white space."""
    return envstr(name, default).replace(",", " ").split()


def envchoice(name: str, default: str, choices: tuple[str, ...]) -> str:
    """Read a value out of `choices`. Raises ImproperlyConfigured."""
    value = envstr(name, default)
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return value


def check_database_url(name: str, url: str) -> str:
    """Return `url` of the variable `name`. Raises ImproperlyConfigured for a URL without a database, or another scheme, port or option.

    The store relies on Postgres (arrays, COPY, NOTIFY). No message shows a part of `url` that may belong to the password.
    """
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(
            f"{name} must begin with postgresql://, not {repr(scheme) if scheme.isalnum() else 'another text'}"
        )
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} has a wrong host or port (0 to 65535), or special characters in the password, which must be quoted, as in %40"
        ) from None
    options = dict(parse_qsl(parts.query))
    if not parts.path.strip("/") and not options.keys() & {"dbname", "service"}:
        raise ImproperlyConfigured(f"{name} names no database: add its name, as in postgresql://user@host:5432/verbatim")
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    if unknown := sorted(set(options) - known):
        raise ImproperlyConfigured(f"{name}: Postgres has no connection option {unknown[0]!r}")
    if not re.fullmatch(r"-?[0-9]{1,9}", timeout := options.get("connect_timeout", "0")):
        raise ImproperlyConfigured(f"{name}: connect_timeout must be a whole number of seconds, not {timeout!r}")
    return url


# Seconds to wait for a connection to the replica.
REPLICA_TIMEOUT_S = 2.0


def replica_database(url: str) -> dict[str, object]:
    """Build the DATABASES entry of a replica, with a short wait for a connection. Raises ImproperlyConfigured."""
    entry = database(url, "RESPONSES_REPLICA_DATABASE_URL")
    options = {**cast(dict[str, object], entry["OPTIONS"]), "pool": {**POOL, "min_size": 0, "timeout": REPLICA_TIMEOUT_S}}
    return {**entry, "OPTIONS": options, "TEST": {"MIRROR": "default"}}


def database(url: str, variable: str = "DATABASE_URL") -> dict[str, object]:
    """Build the DATABASES entry of a URL `postgresql://user:password@host:port/name?host=/socket/folder`.

    Raises ImproperlyConfigured for other schemes.
    """
    parts = urlsplit(check_database_url(variable, url))
    options: dict[str, object] = dict(parse_qsl(parts.query))
    host = options.pop("host", None) or parts.hostname or ""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or options.pop("dbname", ""),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(options.pop("port", None) or parts.port or ""),
        # psycopg pools the connections. Persistent connections of Django would leak one per thread under ASGI.
        "CONN_MAX_AGE": 0,
        "OPTIONS": {**TIME_LIMITS, **options, "pool": POOL},
        "TEST": {"NAME": None},
    }


def check_time_zone(name: str) -> str:
    """Return the name of a time zone. Raises ImproperlyConfigured for a name that the time zone database does not have."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ImproperlyConfigured(f"TZ must be the name of a time zone such as Europe/Berlin, not {name!r}") from None
    return name


def check_token(name: str, token: str, min_length: int = 0) -> str:
    """Return the token of the variable `name`, empty if not set.

    Raises ImproperlyConfigured, without the token, for a short token and for one that no HTTP header can carry.
    """
    if token and len(token) < min_length:
        raise ImproperlyConfigured(f"{name} must have at least {min_length} characters, not {len(token)}")
    if value_problem(token):
        raise ImproperlyConfigured(
            f"{name} may contain letters, digits and signs of ASCII only, and no white space around them: an HTTP header carries it"
        )
    return token
