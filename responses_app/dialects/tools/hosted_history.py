"""History of server tools: earlier calls and results presented to models as function calls.

Calls of built-in tools have the function names of `dialects.tools.builtin`, also where the request does not offer the tools. An MCP
call that was denied, or not yet approved, has an explanation as output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from responses_app.dialects.tools import builtin
from responses_app.dialects.tools.mcp_names import function_name
from responses_app.protocol.items.registry import FAMILIES
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, OUTPUT_NOTE, ModelOutput

Json: TypeAlias = Mapping[str, Any]


def as_calls(items: Sequence[Json], recipients: Collection[str] = ()) -> Iterator[Json]:
    """Convert each item of a server tool to a call and an output; drop items without information for a model.

    `recipients` are the offered tools of gpt-oss: their calls and outputs have the name of the tool under `builtin.RECIPIENT`.
    """
    approvals = {item["approval_request_id"]: item for item in items if item.get("type") == "mcp_approval_response"}
    called = {item.get("approval_request_id") for item in items if item.get("type") == "mcp_call"}
    for item in items:
        if item.get("type") == "mcp_approval_request":
            if item["id"] not in called:
                yield from _pair(item, _mcp_name(item), item["arguments"], _denial(approvals.get(item["id"])))
        elif item.get("type") == "program":
            yield _call(item, item["call_id"], "program", _dump({"code": item["code"]}))
        elif item.get("type") == "program_output":
            yield _output(item, item["call_id"], item["result"])
        elif item.get("type") in _CONVERTED:
            name, arguments, output = _CONVERTED[item["type"]]
            pair = _pair(item, name(item), arguments(item), _shown_output(item, output))
            yield from (_with_recipient(one, name(item), recipients) for one in pair)
        elif item.get("type") == "mcp_list_tools" and item.get("error"):
            yield from _pair(
                item, function_name(item["server_label"], "list_tools"), "{}", f"The listing failed: {item['error']}"
            )
        elif item.get("type") not in _DROPPED:
            yield item


def _shown_output(item: Json, own: Callable[[Json], str]) -> str | list[Json]:
    """Return the output that the tool gave for the model, with pictures as content parts; without one, the output by `own`.

    A note of the server is the end of the text.
    """
    shown: ModelOutput = item.get(MODEL_OUTPUT) or ModelOutput()
    text = own(item) if shown.text is None else shown.text
    text = "\n".join(part for part in (text, item.get(OUTPUT_NOTE)) if part)
    if not shown.images:
        return text
    texts = [{"type": "input_text", "text": text}] if text else []
    return [*texts, *({"type": "input_image", "image_url": url, "detail": "auto"} for url in shown.images)]


def _pair(item: Json, name: str, arguments: str, output: str | list[Json]) -> Iterable[Json]:
    return _call(item, item["id"], name, arguments), _output(item, item["id"], output)


def _with_recipient(item: Json, name: str, recipients: Collection[str]) -> Json:
    recipient = builtin.RECIPIENTS.get(name)
    return {**item, builtin.RECIPIENT: recipient} if recipient in recipients else item


def _call(item: Json, call_id: str, name: str, arguments: str) -> Json:
    return {"type": "function_call", "id": item["id"], "call_id": call_id, "name": name, "arguments": arguments}


def _output(item: Json, call_id: str, output: str | list[Json]) -> Json:
    return {"type": "function_call_output", "id": item["id"], "call_id": call_id, "output": output}


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fields_or_status(item: Json, *keys: str) -> str:
    """Return the fields `keys` of the item; if all are empty, the status of the call."""
    fields = {key: item[key] for key in keys if item.get(key)}
    return _dump(fields or {"status": item.get("status", "completed")})


def _mcp_name(item: Json) -> str:
    return function_name(item["server_label"], item["name"])


def _denial(approval: Json | None) -> str:
    if approval is None:
        return "This call was not made: the user has not approved it yet."
    if approval["approve"]:
        return "This call was not made yet, although the user has approved it."
    reason = approval.get("reason")
    return "This call was not made: the user has denied it." + (f" {reason}" if reason else "")


def _without_image(output: Json) -> Json:
    return {"type": "image"} if output.get("type") == "image" else output


def _mcp_output(item: Json) -> str:
    return str(item["output"]) if item.get("output") is not None else _fields_or_status(item, "error")


def _web_function(item: Json) -> str:
    return _WEB_FUNCTIONS.get(str((item.get("action") or {}).get("type")), builtin.WEB_SEARCH)


def _web_arguments(item: Json) -> str:
    """Return the arguments of a web search. Sources are results, not arguments; several queries were a single call."""
    action = item.get("action") or {}
    shown = {key: action[key] for key in ("query", "url", "pattern") if action.get(key) is not None}
    return _dump(shown or {"query": (action.get("queries") or [""])[0]})


def _file_arguments(queries: Sequence[str]) -> Json:
    """Return the arguments of a file search: the offered argument for a single query, else all queries."""
    return {"query": queries[0]} if len(queries) == 1 else {"queries": queries}


def _sources(item: Json) -> str:
    found = (item.get("action") or {}).get("sources")
    return _fields_or_status({**item, "sources": found}, "results", "sources")


def _tool(item: Json) -> str:
    return _BUILTIN.get(item["type"]) or FAMILIES[item["type"]].tool


_BUILTIN: Final[Mapping[str, str]] = {"file_search_call": builtin.FILE_SEARCH, "code_interpreter_call": builtin.PYTHON}
# Type of the action of a web search -> function.
_WEB_FUNCTIONS: Final[Mapping[str, str]] = {
    "open_page": builtin.OPEN_PAGE,
    "find_in_page": builtin.FIND_IN_PAGE,
    "find": builtin.FIND_IN_PAGE,
}
_ItemText: TypeAlias = Callable[[Json], str]
# Item type -> functions for the function name, the arguments and the output.
_CONVERTED: Final[Mapping[str, tuple[_ItemText, _ItemText, _ItemText]]] = {
    "web_search_call": (_web_function, _web_arguments, _sources),
    "file_search_call": (
        _tool,
        lambda item: _dump(_file_arguments(item["queries"])),
        lambda item: _fields_or_status(item, "results"),
    ),
    "code_interpreter_call": (
        _tool,
        lambda item: _dump({"code": item.get("code") or ""}),
        lambda item: _fields_or_status(
            {**item, "outputs": [_without_image(entry) for entry in item.get("outputs") or ()]}, "outputs"
        ),
    ),
    # The image is too long for a prompt, so the output is the status or the error.
    "image_generation_call": (
        _tool,
        lambda item: _dump({"prompt": item.get("revised_prompt") or ""}),
        lambda item: _fields_or_status(item, "error"),
    ),
    "mcp_call": (_mcp_name, lambda item: str(item["arguments"]), _mcp_output),
}
_DROPPED: Final = frozenset({"mcp_list_tools", "mcp_approval_response"})
TYPES: Final = frozenset({*_CONVERTED, *_DROPPED, "mcp_approval_request", "program", "program_output"})
