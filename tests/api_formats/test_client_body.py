"""Body that is stored for the page of a response: as sent, without credentials, and bounded."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from responses_app.api_formats.client_body import MAX_BYTES, dump_client_body

SHORT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "é" * 1000}], "stop": None, "temperature": 0.5}


def test_a_body_is_stored_as_it_was_sent() -> None:
    assert dump_client_body(SHORT) == orjson.dumps(SHORT).decode()


def test_credentials_are_hidden() -> None:
    server = {"type": "url", "name": "files", "url": "https://files.example/mcp", "authorization_token": "secret-token"}
    asked = {"type": "url", "name": "asked", "url": "https://asked.example/mcp?key=secret-key"}
    text = dump_client_body({**SHORT, "mcp_servers": [server, asked]})
    assert "secret-" not in text
    hidden = [{**server, "authorization_token": "…"}, {**asked, "url": "https://asked.example/mcp?…"}]
    assert orjson.loads(text)["mcp_servers"] == hidden


@pytest.mark.parametrize(("count", "size"), [(1, 10 * MAX_BYTES), (10, MAX_BYTES), (5000, 1000)])
def test_a_long_body_is_shortened(count: int, size: int) -> None:
    messages = [{"role": "user", "content": "x" * size}] * count
    text = dump_client_body({**SHORT, "messages": messages})
    assert len(text) <= MAX_BYTES
    body = orjson.loads(text)
    assert (body["model"], body["temperature"]) == ("m", 0.5)
    if count == 5000:
        assert body["messages"] == "… (5000 entries)"
    else:
        assert body["messages"][0]["content"] == "x" * 400 + f"… ({size - 400} more characters)"
