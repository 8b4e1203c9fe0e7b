"""Lone surrogates in the JSON of MCP servers, as of a text that was cut within an emoji. The parser of the client library refuses them."""

from __future__ import annotations

import re

# Pairs of surrogates, lone surrogates (the group), and other escapes. Without possessive quantifiers, which Python 3.11.2 gets wrong
# in groups.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
# Of the same length as an escape, so that the header Content-Length stays true.
_REPLACEMENT = rb"\ufffd"
# Beginning of an escape at the end of the data, or a high surrogate whose low surrogate may follow.
_INCOMPLETE = re.compile(
    rb"(?<!\\)(?:\\\\)*"
    rb"(\\(?:u(?:[dD](?:[89abAB][0-9a-fA-F]{0,2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?|[c-fC-F][0-9a-fA-F]?)?)?)?)\Z"
)
TAIL_BYTES = 4096


class SurrogateReplacer:
    """Replacement of lone surrogates by U+FFFD in JSON that comes in chunks."""

    def __init__(self) -> None:
        self._held = b""

    def replace(self, chunk: bytes) -> bytes:
        """Return the next bytes. The beginning of an escape at the end is held for the next chunk."""
        data = self._held + chunk
        match = _INCOMPLETE.search(data[-TAIL_BYTES:])
        self._held = match[1] if match else b""
        return replace_lone(data[: len(data) - len(self._held)])

    def end(self) -> bytes:
        """Return the bytes that are held."""
        return replace_lone(self._held)


def replace_lone(data: bytes) -> bytes:
    """Replace escapes of lone surrogates."""
    if rb"\ud" not in data and rb"\uD" not in data:
        return data
    return _ESCAPE.sub(lambda match: _REPLACEMENT if match[1] else match[0], data)
