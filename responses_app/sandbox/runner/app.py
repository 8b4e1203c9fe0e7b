"""HTTP application of the runner. Answers of runs are lines of JSON that are sent as soon as there is output."""

from __future__ import annotations

import asyncio
import errno
import hmac
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from responses_app.sandbox.base import OnceLimits, SandboxError, StorageFull, Stream, WorkFile
from responses_app.sandbox.messages import encode_error, encode_file, encode_line, encode_once, encode_result
from responses_app.sandbox.options import RunnerOptions
from responses_app.sandbox.package_wait import PackageWait
from responses_app.sandbox.runner.containers import ContainerRegistry
from responses_app.sandbox.runner.single_runs import SingleRuns
from responses_app.sandbox.runner.work_folder import absolute_path

CHUNK_BYTES = 1 << 18
DISCONNECT_INTERVAL_S = 0.5
REFUSAL = "the runner of the sandbox refuses the token: RESPONSES_SANDBOX_TOKEN of the server and of the runner differ"
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class RunnerApp:
    """Routes of the runner."""

    def __init__(self, containers: ContainerRegistry, single_runs: SingleRuns, options: RunnerOptions) -> None:
        self._containers, self._single_runs, self._options = containers, single_runs, options
        self._packages = PackageWait()

    def application(self) -> Starlette:
        """Return the ASGI application."""
        container, content = "/containers/{container_id}", "/containers/{container_id}/files/content"
        routes: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("GET", "/health", self._health),
            ("PUT", container, self._create),
            ("GET", container, self._status),
            ("DELETE", container, self._delete),
            ("PUT", f"{container}/has-files", self._note_files),
            ("POST", f"{container}/runs", self._run),
            ("GET", content, self._read_file),
            ("PUT", content, self._put_file),
            ("DELETE", content, self._delete_file),
            ("POST", "/runs", self._run_once),
        ]
        return Starlette(
            routes=[Route(path, self._checked(view), methods=[method]) for method, path, view in routes],
            exception_handlers={SandboxError: _on_error},
        )

    def _checked(self, view: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Return `view` with a check of the token."""
        expected = f"Bearer {self._options.token}".encode()

        async def checked(request: Request) -> Response:
            authorization = request.headers.get("authorization", "").encode()
            if self._options.token and not hmac.compare_digest(authorization, expected):
                return JSONResponse({"code": "unavailable", "message": REFUSAL}, 401)
            return await view(request)

        return checked

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _create(self, request: Request) -> Response:
        container_id, body = request.path_params["container_id"], await request.json()
        memory, project = str(body.get("memory", "1g")), str(body.get("project", ""))
        if body.get("needs_files"):
            return JSONResponse({"is_new": await self._containers.create_empty(container_id, memory, project)})
        return JSONResponse(asdict(await self._containers.create(container_id, memory, project)))

    async def _note_files(self, request: Request) -> Response:
        self._containers.note_files(request.path_params["container_id"])
        return Response(status_code=204)

    async def _status(self, request: Request) -> Response:
        return JSONResponse(asdict(self._containers.status(request.path_params["container_id"])))

    async def _delete(self, request: Request) -> Response:
        await self._containers.delete(request.path_params["container_id"])
        return Response(status_code=204)

    async def _run(self, request: Request) -> Response:
        container_id, code = request.path_params["container_id"], (await request.body()).decode(errors="replace")
        self._containers.status(container_id)

        async def work(send: Callable[[bytes], None]) -> None:
            def on_output(stream: Stream, text: str) -> None:
                send(encode_line(type=stream, text=text))

            # Before the wait for a place, so that a run that waits for packages occupies none.
            await self._packages.wait_for(f"{self._options.startup_code}\n{code}")
            async with self._containers.use_for_run(container_id) as container:
                send(encode_result(self._packages.explained(await container.run(code, on_output))))

        return StreamingResponse(_lines(work, request), media_type="application/x-ndjson")

    async def _run_once(self, request: Request) -> Response:
        query = request.query_params
        limits = OnceLimits(float(query["wall_s"]), int(query["memory_mib"]), int(query["output_bytes"]))
        project, arguments = query.get("project", ""), query.getlist("argument")
        result = await self._single_runs.run(project, query["module"], arguments, _body(request), limits)
        return Response(encode_once(result), media_type="application/x-ndjson")

    async def _read_file(self, request: Request) -> Response:
        async with self._containers.use(request.path_params["container_id"]) as container:
            descriptor = container.work.open_file(request.query_params["path"])
        return StreamingResponse(_chunks(descriptor), media_type="application/octet-stream")

    async def _put_file(self, request: Request) -> Response:
        path, size = request.query_params["path"], 0
        async with self._containers.use(request.path_params["container_id"]) as container:
            try:
                with os.fdopen(container.work.create_file(path), "wb", buffering=0) as file:
                    async for chunk in request.stream():
                        size += await asyncio.to_thread(_write_all, file.fileno(), chunk)
            except (OSError, ClientDisconnect) as error:
                with suppress(SandboxError, OSError):
                    container.work.delete_file(path)
                if getattr(error, "errno", None) in FULL:
                    raise StorageFull(f"the container has no space for {path!r}") from error
                raise
        return JSONResponse(encode_file(WorkFile(absolute_path(path), size)))

    async def _delete_file(self, request: Request) -> Response:
        async with self._containers.use(request.path_params["container_id"]) as container:
            container.work.delete_file(request.query_params["path"])
        return Response(status_code=204)


async def _lines(work: Callable[[Callable[[bytes], None]], Awaitable[None]], request: Request) -> AsyncIterator[bytes]:
    """Yield the lines that `work` sends. A client that disconnects cancels `work`."""
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    task = asyncio.ensure_future(work(lines.put_nowait))
    task.add_done_callback(lambda _: lines.put_nowait(None))
    try:
        while (line := await _next(lines, request)) is not None:
            yield line
        if (error := task.exception()) is not None:
            yield encode_line(type="error", **_failure(error))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _next(lines: asyncio.Queue[bytes | None], request: Request) -> bytes | None:
    """Return the next line; None at the end, or if the client has disconnected."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(DISCONNECT_INTERVAL_S):
                return await lines.get()
        if await request.is_disconnected():
            raise ClientDisconnect


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk


async def _body(request: Request) -> AsyncIterator[bytes]:
    async for chunk in request.stream():
        yield chunk


def _write_all(descriptor: int, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    return len(data)


def _failure(error: BaseException) -> dict[str, Any]:
    if isinstance(error, SandboxError):
        return encode_error(error)[1]
    return {"code": "error", "message": f"the sandbox failed: {type(error).__name__}"}


async def _on_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, SandboxError)  # noqa: S101 - registered for SandboxError
    status, body = encode_error(error)
    return JSONResponse(body, status)
