"""Settings in JSON: loading and checks that several tools need. No message contains a value, as values may be secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ImproperlyConfigured


def load_json(name: str, value: str, forms: str) -> Any:
    """Return the value of the setting `name`: JSON, or the JSON file that `value` names. Raises ImproperlyConfigured.

    `forms` are the forms of the setting, for the message about a file that cannot be read.
    """
    try:
        return json.loads(value if value.startswith("{") else Path(value).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ImproperlyConfigured(f"{name} is not valid JSON (line {error.lineno}, column {error.colno})") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the file is not UTF-8 text"
        raise ImproperlyConfigured(f"{name} must be {forms}: {reason}") from None


def unknown_key_problem(setting: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """Return the problem of a key that is not one of `keys`; None without such a key."""
    unknown = next((key for key in setting if key not in keys), None)
    return None if unknown is None else f"unknown key {unknown!r}; the keys are {', '.join(keys)}"


def split_url(url: str) -> SplitResult | None:
    """Return the parts of a URL, whose port is a number; None for other text."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def has_white_space(url: str) -> bool:
    """Return whether a URL has white space or an invisible character, such as a control character, in any place."""
    return " " in url or not url.isprintable()
