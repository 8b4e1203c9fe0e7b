"""Messages between client and runner: error codes, and results as lines of JSON."""

from __future__ import annotations

import base64
import json
from typing import Any

from responses_app.sandbox.base import (
    ContainerExpired,
    FileMissing,
    InvalidPath,
    OnceResult,
    RunResult,
    SandboxBusy,
    SandboxError,
    SandboxUnavailable,
    StorageFull,
    WorkFile,
)

# Exception, its code on the wire, and the HTTP status.
ERRORS: tuple[tuple[type[SandboxError], str, int], ...] = (
    (ContainerExpired, "container_expired", 404),
    (InvalidPath, "invalid_path", 400),
    (FileMissing, "file_missing", 404),
    (StorageFull, "storage_full", 507),
    (SandboxBusy, "busy", 503),
    (SandboxUnavailable, "unavailable", 503),
)


def encode_error(error: SandboxError) -> tuple[int, dict[str, str]]:
    """Return the HTTP status and the body for an exception."""
    for kind, code, status in ERRORS:
        if isinstance(error, kind):
            return status, {"code": code, "message": str(error)}
    return 500, {"code": "error", "message": str(error)}


def decode_error(body: Any) -> SandboxError:
    """Return the exception for the body of an error."""
    if not isinstance(body, dict):
        return SandboxUnavailable("the sandbox gave an unreadable answer")
    kinds = {code: kind for kind, code, _ in ERRORS}
    return kinds.get(str(body.get("code")), SandboxUnavailable)(str(body.get("message", "")))


def encode_line(**fields: Any) -> bytes:
    """Return a line of JSON in ASCII, as some readers of lines split at other separators of Unicode too."""
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def encode_result(result: RunResult) -> bytes:
    """Return a RunResult as a line, without the output, which other lines carry."""
    return encode_line(
        type="result",
        value=result.value,
        figures=[base64.b64encode(image).decode() for image in result.figures],
        files=[encode_file(file) for file in result.files],
        deleted=result.deleted,
        notices=result.notices,
        error=result.error,
        was_killed=result.was_killed,
        is_truncated=result.is_truncated,
    )


def decode_result(line: dict[str, Any], stdout: str, stderr: str, logs: str) -> RunResult:
    """Return the RunResult of a line of type `result` and of the output before."""
    return RunResult(
        logs=logs,
        stdout=stdout,
        stderr=stderr,
        value=line["value"],
        figures=tuple(base64.b64decode(image) for image in line["figures"]),
        files=tuple(decode_file(file) for file in line["files"]),
        # A runner of an earlier version sends none.
        deleted=tuple(line.get("deleted", ())),
        notices=tuple(line.get("notices", ())),
        error=line["error"],
        was_killed=line["was_killed"],
        is_truncated=line["is_truncated"],
    )


def encode_file(file: WorkFile) -> dict[str, Any]:
    """Return a WorkFile as JSON."""
    return {"path": file.path, "size": file.size}


def decode_file(body: dict[str, Any]) -> WorkFile:
    """Parse a WorkFile."""
    return WorkFile(body["path"], body["size"])


def encode_once(result: OnceResult) -> bytes:
    """Return an OnceResult as a line."""
    return encode_line(
        type="result",
        exit_code=result.exit_code,
        stdout=base64.b64encode(result.stdout).decode(),
        stderr=result.stderr,
        problem=result.problem,
    )


def decode_once(line: dict[str, Any]) -> OnceResult:
    """Parse an OnceResult."""
    return OnceResult(line["exit_code"], base64.b64decode(line["stdout"]), line["stderr"], line["problem"])
