"""Special tokens of the harmony format, and the bytes of tokens."""

from __future__ import annotations

from openai_harmony import HarmonyEncoding, HarmonyError

RETURN, CONSTRAIN, CHANNEL, START, END, MESSAGE, CALL, END_OF_TEXT = (
    200002, 200003, 200005, 200006, 200007, 200008, 200012, 199999,
)  # fmt: skip
STOPS = frozenset({RETURN, CALL, END_OF_TEXT})
ASSISTANT = 173781
FIRST_SPECIAL = 199998


def token_bytes(encoding: HarmonyEncoding, token: int) -> bytes:
    """Return the bytes of a token; empty for an unknown id."""
    try:
        return bytes(encoding._inner.decode_bytes([token]))
    except HarmonyError:
        return b""
