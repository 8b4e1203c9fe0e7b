"""File search tool of a run: searches in the vector stores that the request names."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.utils import timezone

from responses_app.dialects.citations.sources import Sources, UploadedFileSource
from responses_app.errors import InvalidRequest, NotFound
from responses_app.models import VectorStore
from responses_app.protocol.deltas import Delta, FileResult, FileSearch, SearchStarted
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput
from responses_app.store.outages import repeat_while_away
from responses_app.store.vector_stores import stores as stored
from responses_app.store.vector_stores.search import ChunkResult
from responses_app.tools.arguments import InvalidArguments, parse_arguments
from responses_app.tools.base import Json
from responses_app.tools.base_executor import ServerToolExecutor
from responses_app.tools.file_search.functions import FUNCTIONS, TYPES
from responses_app.tools.file_search.service import StoreSearchOptions, search
from responses_app.tools.limits import ToolLimits
from responses_app.tools.offer import ServerToolOffer
from responses_app.tools.outputs.untrusted import wrap_untrusted
from responses_app.utils.shares import ShareExceeded

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


MAX_QUERIES = 8
MAX_QUERY_CHARS = 4096
TOO_SLOW = "The file search took too long."
BUSY = "Too many file searches of this project wait already."
DEFAULT_RESULTS = 20


class FileSearchExecutor(ServerToolExecutor):
    """File search tool, a `ToolExecutor`. `tool` is the declaration, and `path` its place in the request for errors."""

    call_type = "file_search_call"
    repeatable = True

    def __init__(self, tool: Json, project: str, limits: ToolLimits, path: str = "tools") -> None:
        self._uids: Sequence[str] = list(dict.fromkeys(tool["vector_store_ids"]))
        self._options = StoreSearchOptions.parse(
            tool.get("max_num_results") or DEFAULT_RESULTS, tool.get("ranking_options") or {}, tool.get("filters")
        )
        self._project, self._limits, self._path = project, limits, f"{path}.vector_store_ids"
        self._stores: Sequence[VectorStore] = ()
        self._numbers = PassageNumbers()

    async def prepare(self, items: Sequence[Json]) -> None:
        """Find the vector stores. Raises NotFound for an unknown store, and InvalidRequest for an expired store."""
        del items
        self._stores = await sync_to_async(self._find_stores)()

    def offer(self, items: Sequence[Json]) -> ServerToolOffer:
        """Return the offer of the function. The passages of `items` are those that the model can cite."""
        self._numbers = PassageNumbers(items)
        return ServerToolOffer(TYPES, FUNCTIONS, lambda _: FileSearch(), sources=Sources(files=self._numbers.sources))

    async def run(self, call: Json, report: Callable[[Delta], None]) -> FileResult:
        """Search the vector stores. While the database is away, the search waits."""
        report(SearchStarted())
        try:
            queries = _queries(parse_arguments(call["arguments"]))
        except InvalidArguments as error:
            return FileResult([], failed=True, model_text=str(error))
        try:
            async with asyncio.timeout(self._limits.call_timeout_s):
                chunks = await repeat_while_away(partial(search, self._stores, queries, self._options))
        except ShareExceeded:
            return FileResult(queries, failed=True, model_text=BUSY)
        except TimeoutError:
            return FileResult(queries, failed=True, model_text=TOO_SLOW)
        first = self._numbers.reserve(len(chunks))
        text = show_passages(first, chunks, self._limits.result_prompt_bytes)
        return FileResult(queries, [_result(one) for one in chunks], model_text=text)

    def failure(self, call: Json, message: str) -> FileResult:
        """Return the end of a call that failed with `message`."""
        try:
            queries = _queries(parse_arguments(call.get("arguments") or ""))
        except InvalidArguments:
            queries = []
        return FileResult(queries, failed=True, model_text=message)

    async def close(self) -> None:
        """Do nothing: a search leaves nothing open."""

    def _find_stores(self) -> list[VectorStore]:
        stores_by_id = stored.find_many(self._project, self._uids)
        for uid in self._uids:
            if uid not in stores_by_id:
                raise NotFound(f"No vector store found with id '{uid}'.", param=self._path)
            problem = stored.expiry_problem(stores_by_id[uid], timezone.now())
            if problem is not None:
                raise InvalidRequest(problem, param=self._path, code="vector_store_expired")
        return [stores_by_id[uid] for uid in self._uids]


def _queries(arguments: dict[str, Any]) -> list[str]:
    """Return the queries of the model: the argument `query`, or the array `queries`, which some models write unprompted.

    Raises InvalidArguments.
    """
    name = "queries" if "queries" in arguments else "query"
    argument = arguments.get(name)
    texts = [argument] if isinstance(argument, str) else argument
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise InvalidArguments(f"The argument '{name}' is not {'an array of strings' if name == 'queries' else 'a string'}.")
    queries = [one[:MAX_QUERY_CHARS] for one in texts if one.strip()][:MAX_QUERIES]
    if not queries:
        raise InvalidArguments(f"The argument '{name}' has no text.")
    return queries


def _result(chunk: ChunkResult) -> Json:
    """Return a result as the item shows it. No field is null, as typed clients require."""
    return {
        "file_id": chunk.file_id,
        "filename": chunk.filename,
        "score": chunk.score,
        "text": chunk.text,
        "attributes": orjson.loads(chunk.attributes),
    }
