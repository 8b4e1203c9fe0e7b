"""Calls in a form that can be compared: the name and the arguments of a call, and the result that a stored item holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from responses_app.protocol.deltas import CodeResult, Delta, FileResult, McpResult, McpTools, WebResult
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput
from responses_app.tools.arguments import InvalidArguments, parse_arguments
from responses_app.tools.base import Json
from responses_app.tools.web_search import call_arguments
from responses_app.tools.web_search.display import LINKS_PER_DISPLAY
from responses_app.tools.web_search.functions import FIND_IN_PAGE, OPEN_PAGE
from responses_app.tools.web_search.history import BrowsingHistory, LinkMissing

# Items of server tools that hold a result.
CALL_TYPES: Final = frozenset({"mcp_call", "mcp_list_tools", "code_interpreter_call", "web_search_call", "file_search_call"})
# Keys of a call of a client that are no arguments.
_NO_ARGUMENTS: Final = frozenset({"id", "call_id", "type", "status", "name", "server_label", "async", "created_by"})


@dataclass(frozen=True, slots=True)
class CallKey:
    """Name and arguments of a call. Calls with equal keys get the same result. JSON arguments are in canonical form."""

    name: str
    arguments: str

    def __str__(self) -> str:
        return f"{self.name}({self.arguments})"


def call_key(item: Json, history: BrowsingHistory | None = None) -> CallKey:
    """Return the key of a call: of a stored item, or of an open item with the `arguments` of the model.

    `history` resolves the links that a web search call opens by number.
    """
    kind = item["type"]
    if kind == "mcp_list_tools":
        return CallKey(f"{item['server_label']}: list of tools", "")
    if kind in ("mcp_call", "mcp_approval_request"):
        return CallKey(f"{item['server_label']}: {item['name']}", _canonical_text(item["arguments"]))
    if kind == "code_interpreter_call":
        return CallKey("code_interpreter", item["code"] or "")
    if kind == "web_search_call":
        return _search_key(item, history or BrowsingHistory())
    if kind == "file_search_call":
        return CallKey("file_search", _canonical(_file_queries(item)))
    arguments = item.get("arguments") if "arguments" in item else item.get("input")
    if isinstance(arguments, str):
        return CallKey(item.get("name") or kind, _canonical_text(arguments))
    fields = {name: value for name, value in item.items() if name not in _NO_ARGUMENTS}
    return CallKey(item.get("name") or kind, _canonical(fields))


def recorded_result(item: Json) -> Delta:
    """Return the result that the stored `item` holds, with the output that the model has read."""
    shown: ModelOutput = item.get(MODEL_OUTPUT) or ModelOutput()
    read: dict[str, Any] = {"model_text": shown.text, "model_images": shown.images}
    failed = item.get("status") != "completed"
    match item["type"]:
        case "mcp_list_tools":
            return McpTools(item["tools"], item.get("error"))
        case "mcp_call":
            return McpResult(item.get("output"), item.get("error"), **read)
        case "code_interpreter_call":
            return CodeResult(item.get("outputs"), failed, **read)
        case "web_search_call":
            return WebResult(item["action"], failed, item.get("results"), **read)
        case _:
            return FileResult(item["queries"], item.get("results"), failed, **read)


def _search_key(item: Json, history: BrowsingHistory) -> CallKey:
    """Return the key of a web search call by its action. An open call has the text of the model instead."""
    if "function" not in item:
        action = item["action"]
        shown = {name: action[name] for name in ("query", "url", "pattern") if action.get(name)}
        return CallKey(str(action["type"]), _canonical(shown))
    function, text = str(item["function"]), item["arguments"]
    try:
        arguments = parse_arguments(text)
        if function == OPEN_PAGE:
            return CallKey("open_page", _canonical({"url": _page_url(arguments, history) or text}))
        if function == FIND_IN_PAGE:
            found_in = {"pattern": call_arguments.pattern(arguments)}
            return CallKey("find_in_page", _canonical({**found_in, "url": _page_url(arguments, history) or text}))
        return CallKey("search", _canonical({"query": call_arguments.query(arguments)}))
    except InvalidArguments:
        return CallKey(function, text)


def _page_url(arguments: Mapping[str, Any], history: BrowsingHistory) -> str | None:
    """Return the address of the page that a call opens or searches; None if only the web knows it."""
    url = call_arguments.url(arguments)
    if url is not None:
        return url
    number, cursor = call_arguments.integer(arguments, "id"), call_arguments.cursor(arguments)
    try:
        if number is None or number < 0:
            return history.page(cursor).url
        display, index = history.link(number, cursor)
    except LinkMissing:
        return None
    return next((one.url for place, one in display.results.items() if place % LINKS_PER_DISPLAY == index), None)


def _file_queries(item: Json) -> Sequence[str]:
    if "arguments" not in item:
        return list(item["queries"])
    try:
        arguments = parse_arguments(item["arguments"])
    except InvalidArguments:
        return [item["arguments"]]
    queries = arguments.get("queries", arguments.get("query"))
    return queries if isinstance(queries, list) else [str(queries)]


def _canonical_text(text: str) -> str:
    """Return JSON in canonical form, and any other text as it is."""
    try:
        return _canonical(orjson.loads(text))
    except orjson.JSONDecodeError:
        return text


def _canonical(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
