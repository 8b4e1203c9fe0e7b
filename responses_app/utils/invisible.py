"""Control, bidirectional and invisible characters: named on pages, escaped in logs and code."""

from __future__ import annotations

import json
import re

# C0 without tab and line feed, DEL and C1.
CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
# Characters that reorder the text around them (Unicode Standard Annex 9).
BIDI = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# Line separators, soft hyphens, zero-width spaces, fillers, deprecated formats, annotations, tags.
INVISIBLE = (
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Joiners and variation selectors belong to words of some scripts and to emoji. After a letter they stay as they are.
JOINERS = r"\u200c\u200d"
SELECTORS = r"\ufe00-\ufe0f"
_HIDDEN = CONTROLS + BIDI + INVISIBLE
_LETTER = rf"[^\x00-\x7f{CONTROLS}{BIDI}{INVISIBLE}{JOINERS}{SELECTORS}]"
SHOWN_BY_NAME = re.compile(
    rf"[{_HIDDEN}]"
    rf"|(?<!{_LETTER})(?<![\ufe0e\ufe0f])[{JOINERS}]"
    rf"|(?<!{_LETTER})(?<![0-9#*])[{SELECTORS}]"
)
_SHOWN_OR_SURROGATE = re.compile(rf"{SHOWN_BY_NAME.pattern}|[\ud800-\udfff]")
_ESCAPED_IN_LOGS = re.compile(rf"[{CONTROLS}{BIDI}{INVISIBLE}{JOINERS}{SELECTORS}\t\n\ud800-\udfff]")


def named(text: str) -> str:
    """Replace every invisible character by a name like `⟨U+202E⟩`. Tabs and line feeds stay."""
    return SHOWN_BY_NAME.sub(_name, text)


def escaped(text: str) -> str:
    """Escape invisible characters, control characters and line ends, as in a Python string literal."""
    return _ESCAPED_IN_LOGS.sub(_escape, text)


def escaped_in_json(text: str) -> str:
    """Escape invisible characters in a JSON text. The value of the JSON stays the same."""
    return _SHOWN_OR_SURROGATE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def escaped_in_python(source: str) -> str:
    """Escape invisible characters in Python literals. The value of the literals stays the same."""
    return _SHOWN_OR_SURROGATE.sub(_escape, source)


def _name(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
