"""Text of a model, a tool or a client as people may safely look at it: what is invisible or turns lines around is shown by name."""

from __future__ import annotations

import json
from typing import Any

from responses_app.invisible import named


def visible(text: str) -> str:
    """The text with everything in it visible."""
    shown = named(text)
    # Half a character, which JSON can carry, is none that could be sent to a browser.
    return shown if shown.isascii() else shown.encode("utf-8", "replace").decode()


def truncate(text: str, limit: int) -> tuple[str, int]:
    """The beginning of the text, visible, and how many characters of it were left out."""
    return visible(text[:limit]), max(len(text) - limit, 0)


def pretty_json(value: Any) -> str:
    """JSON to be read by people."""
    return visible(json.dumps(value, indent=2, ensure_ascii=False))
