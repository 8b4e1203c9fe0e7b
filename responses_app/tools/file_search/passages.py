"""Passages of files as the model reads them: numbered markers that the model cites, and the text between untrusted marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from responses_app.dialects.citations.sources import UploadedFileSource
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput
from responses_app.store.vector_stores.search import ChunkResult
from responses_app.tools.base import Json
from responses_app.tools.outputs.untrusted import wrap_untrusted

NOTHING_FOUND = "No passage of the files fits these queries."
ORIGIN = "files of the user"
# Text of a file cannot imitate a marker.
_MARKS = str.maketrans({"【": "〖", "】": "〗", "†": "‡"})
_HEADER = re.compile(r"^【(\d{1,9})†([^†】\n]*)】 \((file-[A-Za-z0-9_.:-]+)\)$", re.MULTILINE)
_BLANKS = re.compile(r"\s+")


class PassageNumbers:
    """Numbers of the passages that the model has read, with the files, from the items of the context and of the output."""

    def __init__(self, items: Sequence[Json] = ()) -> None:
        self.sources: Mapping[int, UploadedFileSource] = dict(_sources(items))
        self._next = max(self.sources, default=-1) + 1

    def reserve(self, count: int) -> int:
        """Return the first of `count` new numbers."""
        self._next += count
        return self._next - count


def show_passages(first: int, results: Sequence[ChunkResult], max_bytes: int) -> str:
    """Return the passages with numbers from `first` on, as many as fit into `max_bytes` bytes, and the first in any case."""
    if not results:
        return NOTHING_FOUND
    shown: list[str] = []
    size = 0
    for number, result in enumerate(results, first):
        passage = _passage(number, result)
        size += len(passage.encode())
        if shown and size > max_bytes:
            break
        shown.append(passage)
    return wrap_untrusted("\n\n".join(shown), ORIGIN)


def _passage(number: int, result: ChunkResult) -> str:
    name = _BLANKS.sub(" ", result.filename.translate(_MARKS)).strip()
    return f"【{number}†{name}】 ({result.file_id})\n{result.text.translate(_MARKS).strip()}"


def _sources(items: Sequence[Json]) -> Iterator[tuple[int, UploadedFileSource]]:
    for item in items:
        output = item.get(MODEL_OUTPUT)
        if item.get("type") == "file_search_call" and isinstance(output, ModelOutput) and output.text:
            for number, filename, file_id in _HEADER.findall(output.text):
                yield int(number), UploadedFileSource(file_id, filename)
