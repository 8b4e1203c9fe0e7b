"""Output of a process tree in JSON: pipes on descriptors, whose other lines become JSON objects. Standard library only.

Child processes inherit the pipes and may outlive the context, so its thread ends by a descriptor, and not at the end of the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final

LOGGER: Final = "responses.output"
# In bytes. Without a line end the text is passed on in parts of this size.
MAX_LINE: Final = 1024 * 1024
# In bytes. With room for several records, writers do not block, and their records do not mix.
PIPE_SIZE: Final = 1024 * 1024
READ_SIZE: Final = 64 * 1024
# Level at the beginning of a line, as vLLM writes it: `(EngineCore pid=7) ERROR 11-28 12:00:00 [core.py:1] ...`.
_LEVEL: Final = re.compile(r"(?:\([^)]*\) )?(DEBUG|INFO|WARNING|ERROR|CRITICAL)\b")


def is_json() -> bool:
    """Return whether RESPONSES_LOG_FORMAT asks for JSON."""
    return os.environ.get("RESPONSES_LOG_FORMAT") == "json"


@contextmanager
def json_output(*descriptors: int) -> Iterator[None]:
    """Write each line on the descriptors as a JSON object during the context, if RESPONSES_LOG_FORMAT is `json`."""
    if not is_json():
        yield
        return
    converter = _Converter(descriptors)
    try:
        yield
    finally:
        converter.close()


def to_json(line: bytes) -> bytes:
    """Wrap a line of text in a JSON object. A JSON object stays unchanged; a blank line becomes empty."""
    if not line.strip():
        return b""
    if line.startswith(b"{"):
        # With too many levels for the decoder it is text.
        with suppress(ValueError, RecursionError):
            if isinstance(json.loads(line), dict):
                return line + b"\n"
    message = line.decode(errors="replace").rstrip()
    level = match[1] if (match := _LEVEL.match(message)) else "INFO"
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": time, "level": level, "logger": LOGGER, "message": message}).encode() + b"\n"


class _Converter:
    """Thread that reads the pipes and writes to the former targets. Descriptors with the same target share a pipe."""

    def __init__(self, descriptors: tuple[int, ...]) -> None:
        _flush()
        self._former = [(descriptor, os.dup(descriptor)) for descriptor in descriptors]
        # Read end of a pipe -> target, and -> text without a line end.
        self._targets: dict[int, int] = {}
        self._unfinished: dict[int, bytes] = {}
        pipes = dict[tuple[int, int], int]()
        for descriptor, target in self._former:
            status = os.fstat(target)
            if (identity := (status.st_dev, status.st_ino)) not in pipes:
                pipes[identity] = self._open(target)
            os.dup2(pipes[identity], descriptor)
        for end in pipes.values():
            os.close(end)
        self._stopped, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._run, name="json output", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Restore the descriptors, and write all that the pipes hold."""
        _flush()
        for descriptor, target in self._former:
            os.dup2(target, descriptor)
        os.close(self._stop)
        self._thread.join()
        for end in (self._stopped, *self._targets, *(target for _, target in self._former)):
            os.close(end)

    def _open(self, target: int) -> int:
        """Open a pipe to a target and return the write end."""
        source, end = os.pipe()
        with suppress(OSError):
            fcntl.fcntl(source, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        # The write end blocks, as programs do not expect anything else of their output.
        os.set_blocking(source, False)
        self._targets[source], self._unfinished[source] = target, b""
        return end

    def _run(self) -> None:
        poll, is_stopped = select.poll(), False
        for descriptor in (self._stopped, *self._targets):
            poll.register(descriptor, select.POLLIN)
        while not is_stopped:
            ready = [descriptor for descriptor, _ in poll.poll()]
            is_stopped = self._stopped in ready
            for source in self._targets:
                if is_stopped or source in ready:
                    self._convert(source, is_last=is_stopped)

    def _convert(self, source: int, *, is_last: bool) -> None:
        """Pass on the complete lines of a pipe. If `is_last`, read until the pipe is empty, and pass on an unfinished line."""
        text, chunk = self._unfinished[source], b""
        with suppress(BlockingIOError):
            while chunk := os.read(source, READ_SIZE):
                text += chunk
                if not is_last and (b"\n" in chunk or len(text) >= MAX_LINE):
                    break
        if is_last or (len(text) >= MAX_LINE and b"\n" not in text):
            text += b"\n"
        *lines, self._unfinished[source] = text.split(b"\n")
        _write(self._targets[source], b"".join(map(to_json, lines)))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


def _write(target: int, data: bytes) -> None:
    """Write all bytes. Without a reader, or on a full disk, the bytes are lost."""
    while data:
        try:
            data = data[os.write(target, data) :]
        except BlockingIOError:
            select.select([], [target], [])
        except OSError:
            return
