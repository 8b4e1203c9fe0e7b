"""The text inside `{"input": "..."}` while it is generated."""

from __future__ import annotations

import json
import re

_HEAD = re.compile(r'\s*\{\s*"input"\s*:\s*"')
# As much of a head as there is: each step may be where the text ends so far.
_HEAD_SO_FAR = re.compile(r'\s*(?:\{\s*(?:"(?:i(?:n(?:p(?:u(?:t(?:"\s*(?::\s*)?)?)?)?)?)?)?)?)?')
# Characters and whole escapes of a JSON string; both halves of a surrogate pair together.
_WHOLE = re.compile(
    r'(?:[^"\\]|\\["\\/bfnrt]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*'
)
_ESCAPE_SO_FAR = re.compile(
    r"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?)?"
)
_BROKEN = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)


class InputUnwrapper:
    """The text inside `{"input": "..."}` as it comes; what is wrapped in any other way is the text itself."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = self._over = self._raw = False

    def read(self, more: str) -> str:
        """What is certain by now."""
        if self._raw:
            return more
        self._held += more
        if not self._inside and not self._open():
            return self.flush() if self._raw else ""
        return self._inner()

    def flush(self) -> str:
        """What was held back, when no more will come."""
        text, self._held = "" if self._inside else self._held, ""
        return text

    def _open(self) -> bool:
        head = _HEAD.match(self._held)
        if head is not None:
            self._held, self._inside = self._held[head.end() :], True
            return True
        self._raw = _HEAD_SO_FAR.fullmatch(self._held) is None
        return False

    def _inner(self) -> str:
        said = []
        while self._held and not self._over:
            whole = _WHOLE.match(self._held)
            assert whole is not None  # noqa: S101 - it matches the empty text
            said.append(json.loads(f'"{whole[0]}"', strict=False))
            self._held = self._held[whole.end() :]
            if self._held.startswith('"'):
                self._over = True
            elif self._held and _ESCAPE_SO_FAR.fullmatch(self._held):
                break
            elif self._held:
                said.append(self._mend())
        return "".join(said)

    def _mend(self) -> str:
        """An escape that means nothing: half a pair is no character, anything else is what it says."""
        broken = _BROKEN.match(self._held)
        assert broken is not None  # noqa: S101 - it begins with a backslash
        self._held = self._held[broken.end() :]
        return "\ufffd" if len(broken[0]) > 2 else broken[0]
