"""Redaction of credentials that an MCP server repeats: in clear, in JSON, URLs, hex, and in base64 at any place of a text."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

# Shorter values of headers are no credentials, and replacing them would damage ordinary texts.
MIN_SECRET_LENGTH = 8
REDACTED = "[redacted]"
# Longer credentials are redacted as they are, and their first bytes in base64.
MAX_BASE64_BYTES = 1024
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# Forms of the two letters that differ: standard, URL-safe, percent-encoded, and escaped in JSON.
LETTERS = {"+": r"(?:\+|-|%2[Bb]|\\u002[Bb])", "/": r"(?:\\?/|_|%2[Ff])"}
# Line breaks inside of base64, also as JSON writes them.
BREAK = r"(?:[ \t\r\n]|\\[rn])*"
# Forms and the letters that they mean, for a search without patterns.
FORMS = (
    *((form, "") for form in ("\\n", "\\r", "\n", "\r", " ", "\t")),
    *((form, "+") for form in ("-", "%2B", "%2b", "\\u002B", "\\u002b")),
    *((form, "/") for form in ("\\/", "_", "%2F", "%2f")),
)
PADDING = r"(?:=|%3[Dd]){0,2}"
# Text of JSON, or a number of which a part was redacted.
TEXT_OR_REDACTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(?:(?<=[\[ ])|^)[-+.\deE]*\[redacted\](?:[-+.\deE]|\[redacted\])*')


@dataclass(frozen=True, slots=True)
class _Secret:
    """Credential: the texts other than base64, the first bytes, and the base64 of these bytes at each of the three places."""

    forms: tuple[str, ...]
    beginning: bytes
    letters: tuple[str, ...]


def redact(text: str, headers: Iterable[str], others: Iterable[str]) -> str:
    """Return `text` without the values of `headers`, with and without their scheme, and without the values `others`."""
    secrets = _secrets(tuple(headers), tuple(others))
    for secret in secrets:
        for form in secret.forms:
            text = text.replace(form, REDACTED)
    if not secrets:
        return text
    # Patterns are slow, so a search for plain letters decides first.
    letters = _letters(text)
    for secret in secrets:
        for before, encoded in enumerate(secret.letters):
            if encoded in letters:
                text = _pattern(secret.beginning, before).sub(REDACTED, text)
    return text


def redact_json(value: Any, redact_text: Callable[[str], str]) -> Any:
    """Return the JSON `value` with redacted texts. A number with a credential becomes a text."""
    text = redact_text(json.dumps(value, ensure_ascii=False))
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(TEXT_OR_REDACTED.sub(_as_text, text))


def _as_text(part: re.Match[str]) -> str:
    return part[0] if part[0].startswith('"') else json.dumps(REDACTED)


@lru_cache(64)
def _secrets(headers: tuple[str, ...], others: tuple[str, ...]) -> tuple[_Secret, ...]:
    """Return the credentials, the longest first. The cache is for results of many texts."""
    values = {*headers, *others}
    for header in headers:
        scheme, _, value = header.partition(" ")
        values.add(value.strip())
        if scheme.lower() == "basic":
            user_and_password = _decoded(value.strip())
            values |= {user_and_password, user_and_password.partition(":")[2]}
    longest_first = sorted((value for value in values if len(value) >= MIN_SECRET_LENGTH), key=len, reverse=True)
    return tuple(map(_secret, longest_first))


def _secret(value: str) -> _Secret:
    beginning = value.encode("utf-8", "replace")[:MAX_BASE64_BYTES]
    return _Secret(tuple(_plain_forms(value)), beginning, tuple(_own_letters(beginning, before) for before in range(3)))


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""


def _plain_forms(secret: str) -> set[str]:
    """Return the secret in clear, in JSON, in URLs, and in hex."""
    in_url, in_hex = quote(secret, safe="", errors="replace"), secret.encode("utf-8", "replace").hex()
    in_lower_case = re.sub(r"%..", lambda escape: escape[0].lower(), in_url)
    in_json = (json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))
    return {secret, *in_json, in_url, in_lower_case, in_hex, in_hex.upper()}


def _letters(text: str) -> str:
    """Return `text` with all forms of base64 as standard base64 on a single line."""
    for form, letter in FORMS:
        if form in text:
            text = text.replace(form, letter)
    return text


def _own_letters(secret: bytes, before: int) -> str:
    """Return the base64 letters that have bits of the secret alone, behind `before` other bytes."""
    encoded = base64.b64encode(b"\0" * before + secret).decode()
    return encoded[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]


@lru_cache(64)
def _pattern(secret: bytes, before: int) -> re.Pattern[str]:
    """Return a pattern for the base64 of the secret behind `before` other bytes, with the letters that have bits of neighbours."""
    first_bit, last_bit = before * 8, (before + len(secret)) * 8
    bits = int.from_bytes(secret, "big") << (-last_bit % 6)
    count = -(-last_bit // 6)
    parts = [_letter(bits, count - 1 - place, place, first_bit, last_bit) for place in range(first_bit // 6, count)]
    return re.compile(BREAK.join(parts) + PADDING)


def _letter(bits: int, shift: int, place: int, first_bit: int, last_bit: int) -> str:
    """Return a pattern for the letter number `place`, of which only the bits of the secret are known."""
    known = sum(1 << (5 - bit) for bit in range(6) if first_bit <= place * 6 + bit < last_bit)
    value = bits >> (shift * 6) & known
    possible = [ALPHABET[number] for number in range(64) if number & known == value]
    forms = [LETTERS.get(letter, letter) for letter in possible]
    return forms[0] if len(forms) == 1 else f"(?:{'|'.join(forms)})"
