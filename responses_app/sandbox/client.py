"""Client of the runner over HTTP: on a Unix socket of this machine, or at an address with a token."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import quote

import httpx2

from responses_app.sandbox.base import (
    ContainerStatus,
    OnceLimits,
    OnceResult,
    OnOutput,
    RunResult,
    SandboxEnded,
    SandboxError,
    SandboxUnavailable,
    WorkFile,
)
from responses_app.sandbox.messages import decode_error, decode_file, decode_once, decode_result
from responses_app.utils.unix_socket import connectable

CONNECT_TIMEOUT_S = 10.0
# Seconds until the first answer, which a runner that starts on a busy machine gives late.
ANSWER_TIMEOUT_S = 300.0
# Errors of a connection that was made: the runner may have begun.
_BROKEN = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError, httpx2.CloseError)


class SandboxClient:
    """Client of the runner at `url`: `unix:/path` or `http://host:port`.

    All methods raise SandboxUnavailable; methods of a container raise ContainerExpired.
    """

    def __init__(self, url: str, token: str = "") -> None:
        path = connectable(url.removeprefix("unix:")) if url.startswith("unix:") else None
        self._client = httpx2.AsyncClient(
            base_url="http://sandbox" if path else url,
            # The addresses have no TLS, so no certificates are loaded, which would take 20 ms.
            transport=httpx2.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), uds=path),
            headers={"authorization": f"Bearer {token}"} if token else {},
            timeout=httpx2.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            trust_env=False,
        )

    async def create(self, container_id: str, memory: str = "1g", project: str = "") -> ContainerStatus:
        """Start a container, or return the status of a running one with this id. `memory` is a key of MEMORY_TIERS.

        Each project has a share of the containers.
        """
        body = {"memory": memory, "project": project}
        return ContainerStatus(**await self._json("PUT", _container(container_id), json=body))

    async def create_empty(self, container_id: str, memory: str, project: str) -> bool:
        """Start a container whose runs wait for `note_files`. Return False if a container with this id runs."""
        body = {"memory": memory, "project": project, "needs_files": True}
        # A runner of an earlier version does not answer whether the container is new.
        return bool((await self._json("PUT", _container(container_id), json=body)).get("is_new", True))

    async def note_files(self, container_id: str) -> None:
        """Let the runs of a container begin, after the copy of the files."""
        with suppress(SandboxUnavailable):  # A runner of an earlier version does not know the request.
            await self._json("PUT", f"{_container(container_id)}/has-files")

    async def run(self, container_id: str, code: str, on_output: OnOutput | None = None) -> RunResult:
        """Run Python code in the container. Runs of the same container wait for each other. Cancellation ends the code."""
        path = f"{_container(container_id)}/runs"
        logs: list[tuple[str, str]] = []
        # Silent code is ended by the runner, not by a timeout of the client.
        content = code.encode("utf-8", "replace")
        # A connection that breaks has the meaning of an answer without a result.
        with suppress(SandboxEnded):
            async with self._stream("POST", path, content=content, timeout=_no_read_timeout()) as response:
                async for line in _lines(response):
                    if line["type"] == "result":
                        return decode_result(line, _text(logs, "stdout"), _text(logs, "stderr"), _text(logs))
                    logs.append((line["type"], line["text"]))
                    if on_output is not None:
                        on_output(line["type"], line["text"])
        raise SandboxEnded("the sandbox ended during the run; variables and files are lost")

    async def put_file(self, container_id: str, path: str, content: bytes | AsyncIterator[bytes]) -> WorkFile:
        """Write a file. `path` is absolute or relative to the work folder. Raises InvalidPath, StorageFull."""
        return decode_file(await self._json("PUT", _content(container_id), params={"path": path}, content=content))

    async def read_file(self, container_id: str, path: str) -> AsyncIterator[bytes]:
        """Yield the bytes of a file in chunks. Raises InvalidPath, FileMissing. Symbolic links are not followed."""
        async with self._stream("GET", _content(container_id), params={"path": path}) as response:
            async for chunk in response.aiter_bytes():
                yield chunk

    async def delete_file(self, container_id: str, path: str) -> None:
        """Delete a file. Raises InvalidPath, FileMissing."""
        await self._json("DELETE", _content(container_id), params={"path": path})

    async def delete(self, container_id: str) -> None:
        """End a container with the files. An unknown id is no error."""
        await self._json("DELETE", _container(container_id))

    async def status(self, container_id: str) -> ContainerStatus:
        """Return the status without counting as a use."""
        return ContainerStatus(**await self._json("GET", _container(container_id)))

    async def check(self) -> None:
        """Check with the token that the runner serves. Raises SandboxUnavailable."""
        await self._json("GET", "/health")

    async def run_once(
        self,
        module: str,
        stdin: bytes | AsyncIterator[bytes],
        limits: OnceLimits | None = None,
        arguments: Sequence[str] = (),
        project: str = "",
    ) -> OnceResult:
        """Run a module in a new sandbox."""
        limits = limits or OnceLimits()
        params = {
            "module": module,
            "project": project,
            "argument": list(arguments),
            "wall_s": limits.wall_s,
            "memory_mib": limits.memory_mib,
            "output_bytes": limits.output_bytes,
        }
        return decode_once(await self._json("POST", "/runs", params=params, content=stdin, timeout=_no_read_timeout()))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _json(self, method: str, path: str, **options: Any) -> Any:
        async with self._stream(method, path, **options) as response:
            body = await response.aread()
        return json.loads(body) if body else None

    @asynccontextmanager
    async def _stream(self, method: str, path: str, **options: Any) -> AsyncIterator[httpx2.Response]:
        """Yield a successful response. Raises SandboxError."""
        try:
            async with self._client.stream(method, path, **options) as response:
                if response.is_error:
                    raise _error(await response.aread())
                yield response
        except _BROKEN as error:
            raise SandboxEnded("the sandbox ended during the call") from error
        except httpx2.HTTPError as error:
            raise SandboxUnavailable(f"the sandbox cannot be reached ({type(error).__name__})") from error


async def _lines(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    async for text in response.aiter_lines():
        line = json.loads(text)
        if line["type"] == "error":
            raise decode_error(line)
        yield line


def _error(body: bytes) -> SandboxError:
    try:
        return decode_error(json.loads(body))
    except ValueError:
        return SandboxUnavailable("the sandbox gave an unreadable answer")


def _container(container_id: str) -> str:
    return f"/containers/{quote(container_id, safe='')}"


def _content(container_id: str) -> str:
    return f"{_container(container_id)}/files/content"


def _text(logs: Sequence[tuple[str, str]], stream: str | None = None) -> str:
    return "".join(text for name, text in logs if stream in (None, name))


def _no_read_timeout() -> httpx2.Timeout:
    return httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S)
