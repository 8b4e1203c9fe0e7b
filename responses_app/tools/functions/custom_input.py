"""Incremental extraction of the text inside `{"input": "..."}`, or under another key."""

from __future__ import annotations

import json
import re
from functools import cache

from responses_app.dialects.text.json_tracker import JsonTracker

# An escape of a JSON string; a surrogate pair is one escape.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
# The same, or the beginning of an escape at the end of the text.
_UNFINISHED = r"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?)?\Z"
_ESCAPE_SO_FAR = re.compile(f"(?P<unfinished>{_UNFINISHED})|{_ESCAPE.pattern}", re.DOTALL)


class InputUnwrapper:
    """Extractor of the text inside `{"input": "..."}` as generated; any other text passes unchanged. `key` replaces `input`."""

    def __init__(self, key: str = "input") -> None:
        self._head, self._head_so_far = _head_patterns(key)
        self._pending = ""
        self._json = JsonTracker()
        self._is_inside = self._is_raw = False

    def read(self, more: str) -> str:
        """Return the text that is certain after `more`."""
        if self._is_raw:
            return more
        if self._is_inside:
            return self._decode(more)
        self._pending += more
        return self._match_head()

    def flush(self) -> str:
        """Return the pending text, at the end of the input."""
        text, self._pending = "" if self._is_inside else self._pending, ""
        return text

    def _match_head(self) -> str:
        head = self._head.match(self._pending)
        if head is not None:
            after_head, self._pending, self._is_inside = self._pending[head.end() :], "", True
            self._json.read(head[0])
            return self._decode(after_head)
        self._is_raw = self._head_so_far.fullmatch(self._pending) is None
        return self.flush() if self._is_raw else ""

    def _decode(self, more: str) -> str:
        """Decode `more` up to the end of the string, without an unfinished escape."""
        if not self._json.in_string:
            return ""
        text = self._pending + more[: self._json.read_string(more)]
        escape = next((match for match in _ESCAPE_SO_FAR.finditer(text) if match["unfinished"]), None)
        end = escape.start() if escape is not None and self._json.in_string else len(text)
        self._pending = text[end:]
        return _ESCAPE.sub(_decode_escape, text[:end])


@cache
def _head_patterns(key: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of the text before the value of `key`, and the pattern of any beginning of that text."""
    beginning = r'"\s*(?::\s*)?'
    for char in reversed(key):
        # Each group may be where the text ends so far.
        beginning = f"{char}(?:{beginning})?"
    return re.compile(rf'\s*\{{\s*"{key}"\s*:\s*"'), re.compile(rf'\s*(?:\{{\s*(?:"(?:{beginning})?)?)?')


def _decode_escape(escape: re.Match[str]) -> str:
    """Decode one escape: a lone surrogate becomes U+FFFD, an invalid escape stays as written."""
    try:
        char: str = json.loads(f'"{escape[0]}"')
    except ValueError:
        return escape[0]
    return "\ufffd" if "\ud800" <= char <= "\udfff" else char
