"""Extractor: the text of a file, read in the sandbox, or in a worker process with limits where no sandbox works."""

from __future__ import annotations

import json
from dataclasses import dataclass

from responses_app.extraction import sandboxed
from responses_app.extraction.errors import ExtractionError, ExtractorBusy, invalid
from responses_app.extraction.limits import MAX_FILE_BYTES, MIB, PROCESS
from responses_app.sandbox.base import Sandbox
from responses_app.workers.limits import LimitExceeded, PoolBusy, WorkerDied
from responses_app.workers.pool import Pool

# A project has at most two files in work, one of a request and one of a vector store. The third process serves other projects.
PROCESSES = 3


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """Text of a file. `format` is the detected format, `is_cut` is set if the text ends at the limit of characters."""

    text: str
    format: str
    is_cut: bool


_pool = Pool("responses_app.extraction.job:handle", PROCESS, size=PROCESSES, per_owner=1)


async def extract_text(
    project: str, data: bytes, name: str, sandbox: Sandbox | None = None, *, queue: str = ""
) -> ExtractedText:
    """Extract the text of a file with the given name. Raises ExtractionError, ExtractorBusy.

    Files of `project` in the same `queue` wait for each other. With `sandbox`, no file is read outside of the sandbox.
    """
    if not data:
        raise invalid("The file is empty.")
    if len(data) > MAX_FILE_BYTES:
        raise invalid(f"The file has more than {MAX_FILE_BYTES // MIB} MiB, so its text is not read.")
    payload = json.dumps(name).encode() + b"\n" + data
    if sandbox is not None:
        return _parse_answer(await sandboxed.read_file(sandbox, project, payload, queue))
    return _parse_answer(await _read_in_pool(f"{queue}/{project}", payload))


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
