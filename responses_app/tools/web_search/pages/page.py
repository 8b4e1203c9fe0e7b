"""Page of the web: numbered lines, and links by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_MATCHES = 50
CONTEXT_LINES = 4


class PageFailed(Exception):
    """The page cannot be read. The message is for the model."""


@dataclass(frozen=True, slots=True)
class Page:
    """Page. A link in `lines` is marked as `【number†text】`, where `number` is the index in `links`."""

    url: str
    title: str
    lines: Sequence[str]
    links: Sequence[str] = ()

    def window(self, start: int, count: int) -> Sequence[tuple[int, str]]:
        """Return up to `count` numbered lines from the line `start` on."""
        return list(enumerate(self.lines))[start : start + count]

    def find(self, pattern: str) -> Iterator[Sequence[tuple[int, str]]]:
        """Yield the places of `pattern`, in upper or lower case: each with its line and the lines behind, MAX_MATCHES at most."""
        lowered, line, match_count = pattern.lower(), 0, 0
        while line < len(self.lines) and match_count < MAX_MATCHES:
            if lowered in self.lines[line].lower():
                yield self.window(line, CONTEXT_LINES)
                line, match_count = line + CONTEXT_LINES, match_count + 1
            else:
                line += 1
