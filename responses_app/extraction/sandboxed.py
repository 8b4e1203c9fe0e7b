"""Reading of files in the sandbox, each file in a separate process."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from responses_app.extraction.errors import ExtractorBusy, ExtractorUnavailable, invalid
from responses_app.extraction.limits import MAX_CHARS, MIB, PROCESS
from responses_app.sandbox.base import OnceLimits, OnceResult, Sandbox, SandboxBusy, SandboxUnavailable

JOB = "responses_app.extraction.job"
# A character has at most 4 bytes in UTF-8.
MAX_ANSWER_BYTES = 4 * MAX_CHARS + 4096
# Memory of Python with the libraries, beside the memory for the file.
PROGRAM_MIB = 256
LIMITS = OnceLimits(PROCESS.wall_s, PROCESS.memory_bytes // MIB + PROGRAM_MIB, MAX_ANSWER_BYTES)
WAIT_S = 60.0
# A runner that has ended is started again.
ATTEMPTS = 2
UNAVAILABLE = "The sandbox, which reads files, is not available. Try again in a moment."

_turns: weakref.WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock] = weakref.WeakValueDictionary()


async def read_file(sandbox: Sandbox, project: str, payload: bytes, queue: str = "") -> bytes:
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


async def _run(sandbox: Sandbox, project: str, payload: bytes) -> OnceResult:
    for _ in range(ATTEMPTS):
        try:
            return await sandbox.run_once(JOB, payload, LIMITS, project=project)
        except SandboxBusy as error:
            raise ExtractorBusy(f"Other files are being read: {error}. Try again in a moment.") from error
        except SandboxUnavailable as error:
            failure = error
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
