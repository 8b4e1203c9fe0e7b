"""Extractor: the text of a file, read in the sandbox, or in a worker process with limits where no sandbox works."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from responses_app.extraction import job
from responses_app.extraction.errors import ExtractionError, ExtractorBusy, ExtractorUnavailable, invalid
from responses_app.extraction.limits import MAX_CHARS, MAX_FILE_BYTES, MIB, PROCESS
from responses_app.sandbox.base import OnceLimits, OnceResult, SandboxBusy, SandboxUnavailable
from responses_app.sandbox.client import SandboxClient
from responses_app.workers.limits import LimitExceeded, PoolBusy, WorkerDied
from responses_app.workers.pool import Pool

logger = logging.getLogger("responses.files")

# A project has at most two files in work, one of a request and one of a vector store. The third process serves other projects.
PROCESSES = 3
JOB = "responses_app.extraction.job"
# A character has at most 4 bytes in UTF-8.
MAX_ANSWER_BYTES = 4 * MAX_CHARS + 4096
# Memory of Python with the libraries, beside the memory for the file.
PROGRAM_MIB = 256
LIMITS = OnceLimits(PROCESS.wall_s, PROCESS.memory_bytes // MIB + PROGRAM_MIB, MAX_ANSWER_BYTES)
WAIT_S = 60.0
# A runner that has ended is started again, and a process that was killed from outside, as for the memory of the host, is no fault of
# the file. Bubblewrap adds 128 to the number of a signal.
ATTEMPTS = 2
KILLED = frozenset(code for number in (signal.SIGKILL, signal.SIGTERM) for code in (-number, 128 + number))
UNAVAILABLE = "The sandbox, which reads files, is not available. Try again in a moment."

_turns: weakref.WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock] = weakref.WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """Text of a file. `format` is the detected format, `is_cut` is set if the text ends at the limit of characters."""

    text: str
    format: str
    is_cut: bool


_pool = Pool(f"{JOB}:handle", PROCESS, size=PROCESSES, per_owner=1)


def read_utf8(data: bytes, name: str) -> ExtractedText | None:
    """Read a plain text in UTF-8, which needs no parser; return None for another file. Raises ExtractionError."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    if not data or data.startswith(b"PK") or job.detect_format(data, name) != job.TEXT:
        return None
    return _parse_answer(job.handle(_payload(data, name)))


async def extract_text(
    project: str, data: bytes, name: str, sandbox: SandboxClient | None = None, *, queue: str = ""
) -> ExtractedText:
    """Extract the text of a file with the given name. Raises ExtractionError, ExtractorBusy.

    Files of `project` in the same `queue` wait for each other. With `sandbox`, no file is read outside of the sandbox.
    """
    if not data:
        raise invalid("The file is empty.")
    if len(data) > MAX_FILE_BYTES:
        raise invalid(f"The file has more than {MAX_FILE_BYTES // MIB} MiB, so its text is not read.")
    payload = _payload(data, name)
    if sandbox is not None:
        return _parse_answer(await read_file(sandbox, project, payload, queue))
    return _parse_answer(await _read_in_pool(f"{queue}/{project}", payload))


def _payload(data: bytes, name: str) -> bytes:
    return json.dumps(name).encode() + b"\n" + data


async def _read_in_pool(owner: str, payload: bytes) -> bytes:
    try:
        return await _pool.run(owner, payload)
    except LimitExceeded as error:
        raise invalid(f"The file takes too long to read ({error}).") from error
    except WorkerDied as error:
        raise invalid("The file cannot be read.") from error
    except PoolBusy as error:
        raise ExtractorBusy(f"Files of this project are being read: {error}. Try again in a moment.") from error


def _parse_answer(answer: bytes) -> ExtractedText:
    if answer[:1] == b"!":
        code, _, message = answer[1:].decode().partition(" ")
        raise ExtractionError(message, code)
    head, _, text = answer[1:].partition(b"\n")
    kind, is_cut = json.loads(head)
    return ExtractedText(text.decode(), kind, is_cut)


async def read_file(sandbox: SandboxClient, project: str, payload: bytes, queue: str = "") -> bytes:
    """Return the answer of the job to `payload`. Files of a project in the same `queue` are read in turn.

    Raises ExtractionError, ExtractorBusy.
    """
    async with _turn(f"{queue}/{project}"):
        result = await _run(sandbox, project, payload)
    if result.problem is not None:
        raise invalid(f"The file takes too long or too much memory to read ({result.problem}).")
    if result.exit_code != 0:
        raise invalid("The file cannot be read.")
    return result.stdout


async def _run(sandbox: SandboxClient, project: str, payload: bytes) -> OnceResult:
    for left in reversed(range(ATTEMPTS)):
        try:
            result = await sandbox.run_once(JOB, payload, LIMITS, project=project)
        except SandboxBusy as error:
            raise ExtractorBusy(f"Other files are being read: {error}. Try again in a moment.") from error
        except SandboxUnavailable as error:
            failure = error
            continue
        if left and result.problem is None and result.exit_code in KILLED:
            continue
        return result
    logger.warning("no file can be read: %s", failure)
    raise ExtractorUnavailable(UNAVAILABLE) from failure


@asynccontextmanager
async def _turn(owner: str) -> AsyncIterator[None]:
    """Wait for the turn of `owner`. Raises ExtractorBusy."""
    lock = _turns.setdefault((asyncio.get_running_loop(), owner), asyncio.Lock())
    try:
        async with asyncio.timeout(WAIT_S):
            await lock.acquire()
    except TimeoutError:
        raise ExtractorBusy("Files of this project are being read. Try again in a moment.") from None
    try:
        yield
    finally:
        lock.release()
