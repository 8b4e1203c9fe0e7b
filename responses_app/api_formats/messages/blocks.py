"""Content blocks of output items."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import orjson

from responses_app.protocol.items.streamed_call import is_json
from responses_app.protocol.output_problems import CALL_LIMIT_REACHED
from responses_app.tools.web_search.functions import WEB_SEARCH

Json: TypeAlias = Mapping[str, Any]
Block: TypeAlias = dict[str, Any]
# Key under which arguments are shown that are no JSON object, as Anthropic's documentation advises.
INVALID_JSON: Final = "INVALID_JSON"
SERVER_USE: Final = "srvtoolu_"


def blocks(item: Json, *, shows_thinking: bool) -> list[Block]:
    """Return the blocks of an item that is done. Items without a place in this format have none."""
    kind = item["type"]
    if kind == "message":
        return [text_block(part) for part in item["content"]]
    if kind == "reasoning":
        return [thinking_block(item)] if shows_thinking else []
    if kind == "function_call":
        return [tool_use(item, arguments_object(item["arguments"]))]
    return SERVER_BLOCKS[kind](item) if kind in SERVER_BLOCKS else []


def text_block(part: Json) -> Block:
    """Return the block of a text or a refusal. Without citations `citations` is absent, for clients refuse null."""
    text = part.get("text", part.get("refusal"))
    cited = [citation(one, text) for one in part.get("annotations", ()) if one["type"] == "url_citation"]
    return {"type": "text", "text": text} | ({"citations": cited} if cited else {})


def citation(annotation: Json, text: str) -> dict[str, Any]:
    """Return the citation of a web page; `text` is the text with the cited words."""
    return {
        "type": "web_search_result_location",
        "url": annotation["url"],
        "title": annotation["title"],
        "cited_text": text[annotation["start_index"] : annotation["end_index"]],
        "encrypted_index": "",
    }


def thinking_block(item: Json) -> Block:
    """Return the block of a reasoning item, whose signature is the encrypted content."""
    text = "".join(part["text"] for part in item.get("content") or ())
    return {"type": "thinking", "thinking": text, "signature": item.get("encrypted_content") or ""}


def tool_use(item: Json, arguments: Json | orjson.Fragment) -> Block:
    """Return the block of a call that the client runs."""
    return {"type": "tool_use", "id": item["call_id"], "name": item["name"], "input": arguments}


def arguments_object(text: str) -> Json | orjson.Fragment:
    """Return the arguments of a call as JSON; other text than a JSON object is the value of INVALID_JSON.

    A JSON object is the text of the model, as in a stream: numbers keep all digits, also numbers beyond 64 bits.
    """
    return orjson.Fragment(text or "{}") if _is_object(text or "{}") else {INVALID_JSON: text}


def _is_object(text: str) -> bool:
    """Return whether a text is a JSON object that any parser of JSON reads."""
    try:
        return isinstance(orjson.loads(text), dict)
    except ValueError:
        # orjson also refuses numbers beyond floats of 64 bits, and rightly deep nesting and halves of surrogate pairs.
        return text.lstrip()[:1] == "{" and is_json(text) and _can_be_encoded(json.loads(text))


def _can_be_encoded(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def is_search(item: Json) -> bool:
    """Return whether an item is a web search, and not an opened page."""
    return item["type"] == "web_search_call" and (item.get("action") or {}).get("type") == "search"


def excess_searches(response: Json) -> list[Block]:
    """Return the blocks of the searches beyond the limit of calls, which were not made and have no items."""
    problems = [one for one in response.get("output_problems", ()) if one["type"] == CALL_LIMIT_REACHED]
    made: list[Block] = []
    for index, problem in enumerate(problems):
        name, _, arguments = problem["text"].partition(" ")
        if name == WEB_SEARCH:
            item = {"id": f"{response['id']}_{index}"}
            made += _server_call(item, WEB_SEARCH, arguments_object(arguments), _search_error("max_uses_exceeded"))
    return made


def _search_error(code: str) -> Block:
    return {"type": "web_search_tool_result_error", "error_code": code}


def _mcp_call(item: Json) -> list[Block]:
    uid, error = item["id"], item.get("error")
    text = item.get("output") if error is None else _mcp_error_text(error)
    use = {"type": "mcp_tool_use", "id": uid, "name": item["name"], "server_name": item["server_label"]}
    content = [{"type": "text", "text": text or ""}]
    return [
        {**use, "input": arguments_object(item["arguments"])},
        {"type": "mcp_tool_result", "tool_use_id": uid, "is_error": error is not None, "content": content},
    ]


def _mcp_error_text(error: Json) -> str:
    """Return the texts of a tool that failed, or the message of another error, as Anthropic's API shows these."""
    parts = error.get("content")
    if parts is None:
        return str(error["message"])
    return "\n".join(part["text"] if part["type"] == "text" else json.dumps(part) for part in parts)


def _web_search_call(item: Json) -> list[Block]:
    action = item.get("action") or {}
    if not is_search(item):
        # An opened page is part of the search here.
        return []
    results = [
        {
            "type": "web_search_result",
            "url": one["url"],
            "title": one.get("title") or "",
            "encrypted_content": "",
            "page_age": None,
        }
        for one in item.get("results") or ()
        if "url" in one
    ]
    content: Any = _search_error("unavailable") if item["status"] == "failed" else results
    return _server_call(item, WEB_SEARCH, {"query": action.get("query") or ""}, content)


def _code_interpreter_call(item: Json) -> list[Block]:
    logs = "".join(output.get("logs", "") for output in item.get("outputs") or () if output["type"] == "logs")
    content = {"type": "code_execution_result", "stdout": logs, "stderr": "", "return_code": 0, "content": []}
    if item["status"] != "completed":
        content = {"type": "code_execution_tool_result_error", "error_code": "unavailable"}
    return _server_call(item, "code_execution", {"code": item.get("code") or ""}, content)


def _server_call(item: Json, name: str, arguments: Json | orjson.Fragment, content: Any) -> list[Block]:
    uid = SERVER_USE + item["id"].partition("_")[2]
    return [
        {"type": "server_tool_use", "id": uid, "name": name, "input": arguments},
        {"type": f"{name}_tool_result", "tool_use_id": uid, "content": content},
    ]


SERVER_BLOCKS: Final = {
    "mcp_call": _mcp_call,
    "web_search_call": _web_search_call,
    "code_interpreter_call": _code_interpreter_call,
}
