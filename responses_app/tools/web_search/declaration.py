"""Web search: the declaration of the server tool."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from responses_app.protocol.deltas import WebResult
from responses_app.tools.base import Json, ToolExecutor
from responses_app.tools.declaration import OptionalParts, ServerTool, ToolCallContext
from responses_app.tools.web_search.functions import FUNCTIONS, PAST_CALLS, TYPES
from responses_app.tools.web_search.schema import WebSearchCallInput, parse_web_search

SOURCES: Final = "web_search_call.action.sources"
RESULTS: Final = "web_search_call.results"


def is_cached_search(tool: Json) -> bool:
    """Return True for a web search without access to the web. The response repeats the tool, and the model is not offered it.

    Codex adds such a tool to its requests; a refusal would refuse the whole of Codex.
    """
    return tool["type"] in TYPES and tool.get("external_web_access") is False


def _open(context: ToolCallContext) -> ToolExecutor | None:
    from responses_app.tools.web_search.executor import open_web_search

    return open_web_search(context)


def _parts_of(result: WebResult) -> Json:
    return {"results": result.results, "sources": result.action.get("sources")}


def _drop(result: WebResult, include: Collection[str]) -> WebResult:
    action = result.action
    if SOURCES not in include:
        action = {key: value for key, value in action.items() if key != "sources"}
    return replace(result, action=action, results=result.results if RESULTS in include else None)


WEB_SEARCH: Final = ServerTool(
    name="web_search",
    types=TYPES,
    functions=FUNCTIONS,
    past_calls=PAST_CALLS,
    open=_open,
    parse=parse_web_search,
    input_items={"web_search_call": WebSearchCallInput},
    setting="RESPONSES_WEB_SEARCH",
    is_offered=lambda tool: not is_cached_search(tool),
    includes=(SOURCES, RESULTS),
    optional_parts={WebResult: OptionalParts(_parts_of, _drop)},
)
