"""The anthropic package against the views of a test. Its import takes two seconds of CPU, so that tests import it when needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import httpx2
from django.test import AsyncClient


def connect(client: AsyncClient) -> Any:
    """Return an `AsyncAnthropic` whose requests `client` sends."""

    async def send(request: httpx2.Request) -> httpx2.Response:
        headers = {name: value for name, value in request.headers.items() if name.startswith(("anthropic-", "x-api-key"))}
        path, kind = request.url.raw_path.decode(), request.headers.get("content-type", "")
        response: Any = await client.generic(request.method, path, await request.aread(), kind, headers=headers)
        content = b"".join([part async for part in response]) if response.streaming else response.content
        return httpx2.Response(response.status_code, headers=dict(response.headers), content=content)

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(send))
    return import_module("anthropic").AsyncAnthropic(api_key="x", base_url="http://test", max_retries=0, http_client=transport)
