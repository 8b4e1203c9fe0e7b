"""Links of Markdown, found while the text is written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_TARGET = 4096
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


@dataclass(slots=True)
class LinkTracker:
    """Tracker of `[text](target)` in a line. Positions count from the beginning of the text. An image is no link."""

    # Positions of the open brackets; None for an image.
    _brackets: list[int | None] = field(default_factory=list)
    # Position of the bracket whose pair was the character before.
    _text: int | None = None
    # Position of the link whose target is open, the target so far, and the open parentheses in the target.
    _link: int | None = None
    _target: str = ""
    _depth: int = 0
    _last: str = ""

    def read(self, text: str, position: int, *, is_escaped: bool = False) -> tuple[int, str] | None:
        """Read a character, or text without special characters, at `position`. Return start and target of a link that ends here.

        An escaped character has no meaning.
        """
        if self._link is not None:
            return self._read_target(text, is_escaped)
        self._read_text(text, position, is_escaped)
        return None

    def _read_text(self, text: str, position: int, is_escaped: bool) -> None:
        before, self._text = self._text, None
        last, self._last = self._last, text[-1:]
        if is_escaped:
            self._last = ""
        elif text == "[":
            self._brackets.append(None if last == "!" else position)
        elif text == "]" and self._brackets:
            self._text = self._brackets.pop()
        elif text == "(" and before is not None:
            self._link, self._target, self._depth = before, "", 0

    def _read_target(self, text: str, is_escaped: bool) -> tuple[int, str] | None:
        if text == ")" and not self._depth and not is_escaped:
            link, self._link, self._last = self._link, None, ")"
            return None if link is None else (link, _address(self._target))
        if not is_escaped:
            self._depth += (text == "(") - (text == ")")
        self._target += text
        if len(self._target) > MAX_TARGET:
            self._link = None
        return None


def _address(target: str) -> str:
    """Return the address in the target of a link, without a title and without the marks of escapes."""
    target = _ESCAPE.sub(r"\1", target.strip())
    if target.startswith("<"):
        return target[1:].partition(">")[0]
    return target.split(maxsplit=1)[0] if target else ""
