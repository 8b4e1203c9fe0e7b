"""Typed readers for environment variables, which remember what they were asked for so that the docs can be checked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from project.pool import POOL
from responses_app.durations import parse_duration


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable that the settings read: its name and its default as text."""

    name: str
    default: str


READ: dict[str, Variable] = {}


def envstr(name: str, default: str = "") -> str:
    """The value of `name`; a file named by `NAME_FILE` wins, so that secrets can be mounted."""
    READ[name] = Variable(name, default)
    path = os.environ.get(f"{name}_FILE")
    if path:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    return os.environ.get(name, default)


def envbool(name: str, default: bool = False) -> bool:
    """A switch. Raises ImproperlyConfigured for anything but the eight usual spellings."""
    value = envstr(name, str(default)).strip().lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"", "0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}")


def envint(name: str, default: int, least: int = 0) -> int:
    """A whole number of at least `least`. Raises ImproperlyConfigured."""
    value = envstr(name, str(default))
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}") from None
    if number < least:
        raise ImproperlyConfigured(f"{name} must be at least {least}, not {number}")
    return number


def envage(name: str, default: str, unit: str = "") -> timedelta | None:
    """An age such as `7d`, a number without a unit being in `unit`; None if it is empty or `off`. Raises ImproperlyConfigured."""
    value = envstr(name, default).strip()
    try:
        return parse_duration(value + unit if value.isdecimal() else value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be {error}") from None


def envlist(name: str, default: str = "") -> list[str]:
    """Values between commas or white space."""
    return envstr(name, default).replace(",", " ").split()


def envchoice(name: str, default: str, choices: tuple[str, ...]) -> str:
    """One of `choices`. Raises ImproperlyConfigured."""
    value = envstr(name, default)
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return value


def database(url: str) -> dict[str, object]:
    """Django's DATABASES entry for a `postgresql://user:password@host:port/name?host=/socket/folder` URL.

    Raises ImproperlyConfigured for other schemes: the store relies on Postgres (arrays, COPY, NOTIFY).
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(f"DATABASE_URL must begin with postgresql://, not {parts.scheme or url!r}")
    options: dict[str, object] = dict(parse_qsl(parts.query))
    host = options.pop("host", None) or parts.hostname or ""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "postgres",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(options.pop("port", None) or parts.port or ""),
        # Connections are pooled by psycopg; under ASGI, Django's own persistence would leak one per thread.
        "CONN_MAX_AGE": 0,
        "OPTIONS": {**options, "pool": POOL},
        "TEST": {"NAME": None},
    }
