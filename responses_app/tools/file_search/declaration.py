"""File search: the declaration of the server tool."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from responses_app.protocol.deltas import FileResult
from responses_app.tools.base import Json, ToolExecutor
from responses_app.tools.declaration import OptionalParts, ServerTool, ToolCallContext
from responses_app.tools.file_search.functions import FUNCTIONS, PAST_CALLS, TYPES
from responses_app.tools.file_search.schema import FileSearchCallInput, parse_file_search

RESULTS: Final = "file_search_call.results"


def _open(context: ToolCallContext) -> ToolExecutor:
    from responses_app.tools.file_search.executor import FileSearchExecutor
    from responses_app.tools.limits import ToolLimits

    return FileSearchExecutor(context.declared, context.project, ToolLimits.from_settings(), context.path)


def _parts_of(result: FileResult) -> Json:
    return {"results": result.results}


def _drop(result: FileResult, include: Collection[str]) -> FileResult:
    return result if RESULTS in include else replace(result, results=None)


FILE_SEARCH: Final = ServerTool(
    name="file_search",
    types=TYPES,
    functions=FUNCTIONS,
    past_calls=PAST_CALLS,
    open=_open,
    parse=parse_file_search,
    input_items={"file_search_call": FileSearchCallInput},
    includes=(RESULTS,),
    optional_parts={FileResult: OptionalParts(_parts_of, _drop)},
)
