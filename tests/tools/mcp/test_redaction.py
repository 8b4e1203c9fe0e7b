"""Redaction of credentials: plain, in JSON and in base64 at any place, and no other text."""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from urllib.parse import quote

import pytest

from responses_app.tools.mcp.redaction import REDACTED, redact, redact_json

TOKEN = "sk-Tok?n~~>>ÿÿ/secret"


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("form", ["standard", "url-safe", "no padding", "percent", "lines", "json"])
def test_base64_of_a_credential_is_redacted(before: int, after: int, form: str) -> None:
    raw = b"x" * before + TOKEN.encode() + b"y" * after
    encoded = base64.b64encode(raw).decode()
    shown = {
        "standard": encoded,
        "url-safe": base64.urlsafe_b64encode(raw).decode(),
        "no padding": encoded.rstrip("="),
        "percent": quote(encoded, safe=""),
        "lines": "\n".join(re.findall(".{1,5}", encoded)),
        "json": json.dumps("\n".join(re.findall(".{1,7}", encoded))).replace("/", "\\/"),
    }[form]
    cleaned = redact(f"echo: {shown} end", [f"Bearer {TOKEN}"], [])
    assert REDACTED in cleaned
    redacted_parts = cleaned.removeprefix("echo: ").removesuffix(" end").strip('"').partition(REDACTED)
    # The letters around the credential are those of the neighbours.
    assert len(redacted_parts[0]) <= 4
    assert len(redacted_parts[2].replace("%3D", "=").replace("\\n", "")) <= 7


@pytest.mark.parametrize(
    ("headers", "others", "text", "expected"),
    [
        (["Bearer token-1234"], [], "token-1234 and Bearer token-1234", f"{REDACTED} and {REDACTED}"),
        (["Basic " + base64.b64encode(b"user:password1").decode()], [], "user:password1, password1", f"{REDACTED}, {REDACTED}"),
        ([], ['quo"ted\\value'], json.dumps({"a": 'quo"ted\\value'}), f'{{"a": "{REDACTED}"}}'),
        (["Bearer short"], ["word"], "short word", "short word"),
        (["Bearer token-1234"], [], "dG9rZW4 is no credential", "dG9rZW4 is no credential"),
        (["Bearer to/ken+1234="], [], "/?key=to%2Fken%2B1234%3D", f"/?key={REDACTED}"),
        (["Bearer to/ken+1234="], [], "/?key=to%2fken%2b1234%3d", f"/?key={REDACTED}"),
        (["Bearer token-ä1234"], [], "token-ä1234".encode().hex(), REDACTED),
        (["Bearer token-1234"], [], f"0x{b'token-1234'.hex().upper()}", f"0x{REDACTED}"),
        ([], [], "text", "text"),
    ],
)
def test_credentials_alone_are_redacted(headers: list[str], others: list[str], text: str, expected: str) -> None:
    assert redact(text, headers, others) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"account": 12345678}, {"account": REDACTED}),
        ([-123456789.5, 1.5e300, [12345678], 8], [REDACTED, 1.5e300, [REDACTED], 8]),
        ({"12345678": 'a "12345678", \\', "b": [12345678, None]}, {REDACTED: f'a "{REDACTED}", \\', "b": [REDACTED, None]}),
        ({"a": [True, "[redacted]"], "b": 12345678}, {"a": [True, "[redacted]"], "b": REDACTED}),
        (12345678, REDACTED),
    ],
)
def test_numbers_with_a_credential_are_redacted(value: Any, expected: Any) -> None:
    assert redact_json(value, lambda text: redact(text, [], ["12345678"])) == expected
