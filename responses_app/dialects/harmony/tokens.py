"""Special tokens of the harmony format, and the bytes of tokens."""

from __future__ import annotations

from functools import cache

from openai_harmony import HarmonyEncoding, HarmonyError

from responses_app.dialects.text.decoder import PlainTokens, whole_text

RETURN, CONSTRAIN, CHANNEL, START, END, MESSAGE, CALL, END_OF_TEXT = (
    200002, 200003, 200005, 200006, 200007, 200008, 200012, 199999,
)  # fmt: skip
STOPS = frozenset({RETURN, CALL, END_OF_TEXT})
ASSISTANT = 173781
FIRST_SPECIAL = 199998
VOCABULARY_SIZE = 201088


def token_bytes(encoding: HarmonyEncoding, token: int) -> bytes:
    """Return the bytes of a token; empty for an unknown id."""
    try:
        return bytes(encoding._inner.decode_bytes([token]))
    except HarmonyError:
        return b""


@cache
def plain_tokens(encoding: HarmonyEncoding) -> PlainTokens:
    """Return the table of all tokens of the encoding but the special ones, which all parsers share."""
    return PlainTokens(lambda token: "" if token >= FIRST_SPECIAL else whole_text(token_bytes(encoding, token)))


@cache
def string_tokens(encoding: HarmonyEncoding) -> PlainTokens:
    """Return the table of the plain tokens without a quote or a backslash, which neither end nor escape in a string of JSON."""
    plain = plain_tokens(encoding)
    return PlainTokens(lambda token: "" if {'"', "\\"}.intersection(plain[token]) else plain[token])
