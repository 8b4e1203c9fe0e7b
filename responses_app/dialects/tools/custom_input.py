"""Incremental extraction of the text inside `{"input": "..."}`."""

from __future__ import annotations

import json
import re

_HEAD = re.compile(r'\s*\{\s*"input"\s*:\s*"')
# Any beginning of the head: each group may be where the text ends so far.
_HEAD_SO_FAR = re.compile(r'\s*(?:\{\s*(?:"(?:i(?:n(?:p(?:u(?:t(?:"\s*(?::\s*)?)?)?)?)?)?)?)?)?')
# Characters and complete escapes of a JSON string; surrogate pairs as a unit.
_COMPLETE = re.compile(
    r'(?:[^"\\]|\\["\\/bfnrt]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*'
)
_ESCAPE_SO_FAR = re.compile(
    r"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?)?"
)
_BROKEN = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)


class InputUnwrapper:
    """Extracts the text inside `{"input": "..."}` as generated; any other text passes unchanged."""

    def __init__(self) -> None:
        self._held = ""
        self._is_inside = self._is_over = self._is_raw = False

    def read(self, more: str) -> str:
        """Return the text that is certain by now."""
        if self._is_raw:
            return more
        self._held += more
        if not self._is_inside and not self._match_head():
            return self.flush() if self._is_raw else ""
        return self._decode_held()

    def flush(self) -> str:
        """Return the text held back, at the end of the input."""
        text, self._held = "" if self._is_inside else self._held, ""
        return text

    def _match_head(self) -> bool:
        head = _HEAD.match(self._held)
        if head is not None:
            self._held, self._is_inside = self._held[head.end() :], True
            return True
        self._is_raw = _HEAD_SO_FAR.fullmatch(self._held) is None
        return False

    def _decode_held(self) -> str:
        decoded = []
        while self._held and not self._is_over:
            complete = _COMPLETE.match(self._held)
            assert complete is not None  # noqa: S101 - it matches the empty text
            decoded.append(json.loads(f'"{complete[0]}"', strict=False))
            self._held = self._held[complete.end() :]
            if self._held.startswith('"'):
                self._is_over = True
            elif self._held and _ESCAPE_SO_FAR.fullmatch(self._held):
                break
            elif self._held:
                decoded.append(self._decode_invalid_escape())
        return "".join(decoded)

    def _decode_invalid_escape(self) -> str:
        """Decode an invalid escape: a lone surrogate becomes U+FFFD, any other text stays as written."""
        broken = _BROKEN.match(self._held)
        assert broken is not None  # noqa: S101 - it begins with a backslash
        self._held = self._held[broken.end() :]
        return "\ufffd" if len(broken[0]) > 2 else broken[0]
