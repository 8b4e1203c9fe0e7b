"""Text of a model, a tool or a client as people may safely look at it: what is invisible or turns lines around is shown by name."""

from __future__ import annotations

import json
from typing import Any

# Characters that reorder what stands around them (UAX 9): their effect would leave the place where they stand.
BIDI = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)
# Tab and line feed are what they are. ANSI sequences become harmless letters behind the name of ESC.
CONTROLS = (*(code for code in range(0x20) if code not in (0x09, 0x0A)), *range(0x7F, 0xA0))
VISIBLE = {code: f"⟨U+{code:04X}⟩" for code in (*CONTROLS, *BIDI)}


def plain(text: str) -> str:
    """The text with everything in it visible."""
    shown = text.translate(VISIBLE)
    # Half a character, which JSON can carry, is none that could be sent to a browser.
    return shown if shown.isascii() else shown.encode("utf-8", "replace").decode()


def cut(text: str, limit: int) -> tuple[str, int]:
    """The beginning of the text, visible, and how many characters of it were left out."""
    return plain(text[:limit]), max(len(text) - limit, 0)


def pretty(value: Any) -> str:
    """JSON to be read by people."""
    return plain(json.dumps(value, indent=2, ensure_ascii=False))
