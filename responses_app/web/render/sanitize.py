"""Sanitizing of untrusted text: invisible and bidirectional control characters are shown by name."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from responses_app.utils.invisible import named

SERVER_URL_QUERY: Final = re.compile(r'("server_url": ?"(?:[^"\\?]|\\.)*)\?(?:[^"\\]|\\.)*"')


def visible(text: str) -> str:
    """Name invisible characters, and replace lone surrogates."""
    shown = named(text)
    # JSON can contain a lone surrogate, which UTF-8 cannot encode.
    return shown if shown.isascii() else shown.encode("utf-8", "replace").decode()


def truncate(text: str, limit: int) -> tuple[str, int]:
    """Return the first `limit` characters with invisible characters named, and the count of omitted characters."""
    return visible(text[:limit]), max(len(text) - limit, 0)


def readable(text: str) -> str:
    """Return a text with invisible characters named, and a JSON object or array also indented."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return pretty_json(json.loads(text))
        except (ValueError, RecursionError):
            pass
    return visible(text)


def pretty_json(value: Any) -> str:
    """Format `value` as indented JSON with invisible characters named and the queries of MCP servers' URLs hidden."""
    return visible(hide_url_queries(json.dumps(value, indent=2, ensure_ascii=False)))


def hide_url_queries(text: str) -> str:
    """Replace the query of each `server_url` in the JSON `text` by an ellipsis, because a query may contain a credential."""
    return SERVER_URL_QUERY.sub(r'\1?…"', text)
