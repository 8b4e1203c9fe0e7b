"""History of server tools: earlier calls and results presented to models as function calls.

Calls have the names of the functions, also where the request does not offer the tools. An MCP call that was denied, or not yet approved,
has an explanation as output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from responses_app.dialects.toolset import RECIPIENT
from responses_app.protocol.items.registry import FAMILIES
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, OUTPUT_NOTE, ModelOutput
from responses_app.tools.base import Json
from responses_app.tools.declaration import PastCall, dump, fields_or_status
from responses_app.tools.mcp.function_names import function_name
from responses_app.tools.registry import BY_APPROVAL_LABEL, PAST_CALLS, RECIPIENTS


def as_calls(items: Sequence[Json], recipients: Collection[str] = ()) -> Iterator[Json]:
    """Convert each item of a server tool to a call and an output; drop items without information for a model.

    `recipients` are the offered tools of gpt-oss: their calls and outputs have the name of the tool under RECIPIENT.
    """
    approvals = {item["approval_request_id"]: item for item in items if item.get("type") == "mcp_approval_response"}
    called = {item.get("approval_request_id") for item in items if item.get("type") == "mcp_call"}
    for item in items:
        if item.get("type") == "mcp_approval_request":
            if item["id"] not in called:
                yield from _requested_call(item, items, approvals.get(item["id"]), recipients)
        elif item.get("type") == "program":
            yield _call(item, item["call_id"], "program", dump({"code": item["code"]}))
        elif item.get("type") == "program_output":
            yield _output(item, item["call_id"], item["result"])
        elif item.get("type") in _PAST_CALLS:
            past, name = _PAST_CALLS[item["type"]], _PAST_CALLS[item["type"]].function(item)
            pair = _pair(item, name, past.arguments(item), _shown_output(item, past.output))
            yield from (_with_recipient(one, name, recipients) for one in pair)
        elif item.get("type") == "mcp_list_tools" and item.get("error"):
            yield from _pair(
                item, function_name(item["server_label"], "list_tools"), "{}", f"The listing failed: {item['error']}"
            )
        elif item.get("type") not in _DROPPED:
            yield item


def _requested_call(item: Json, items: Sequence[Json], approval: Json | None, recipients: Collection[str]) -> Iterator[Json]:
    """Yield the call of a request for approval with an explanation; nothing if `items` have the call of a server tool."""
    tool = BY_APPROVAL_LABEL.get(item["server_label"])
    if tool is None:
        yield from _pair(item, _mcp_name(item), item["arguments"], _denial(approval))
    elif approval is None or not approval["approve"] or item in tool.approved_requests(items):
        for one in _pair(item, item["name"], item["arguments"], _denial(approval)):
            yield _with_recipient(one, item["name"], recipients)


def _shown_output(item: Json, read_text: Callable[[Json], str]) -> str | list[Json]:
    """Return the output that the tool gave for the model, with pictures as content parts; without pictures, the text by `read_text`.

    A note of the server is the end of the text.
    """
    shown: ModelOutput = item.get(MODEL_OUTPUT) or ModelOutput()
    text = read_text(item) if shown.text is None else shown.text
    text = "\n".join(part for part in (text, item.get(OUTPUT_NOTE)) if part)
    if not shown.images:
        return text
    texts = [{"type": "input_text", "text": text}] if text else []
    return [*texts, *({"type": "input_image", "image_url": url, "detail": "auto"} for url in shown.images)]


def _pair(item: Json, name: str, arguments: str, output: str | list[Json]) -> Iterable[Json]:
    return _call(item, item["id"], name, arguments), _output(item, item["id"], output)


def _with_recipient(item: Json, name: str, recipients: Collection[str]) -> Json:
    recipient = RECIPIENTS.get(name)
    return {**item, RECIPIENT: recipient} if recipient in recipients else item


def _call(item: Json, call_id: str, name: str, arguments: str) -> Json:
    return {"type": "function_call", "id": item["id"], "call_id": call_id, "name": name, "arguments": arguments}


def _output(item: Json, call_id: str, output: str | list[Json]) -> Json:
    return {"type": "function_call_output", "id": item["id"], "call_id": call_id, "output": output}


def _mcp_name(item: Json) -> str:
    return function_name(item["server_label"], item["name"])


def _denial(approval: Json | None) -> str:
    if approval is None:
        return "This call was not made: the user has not approved it yet."
    if approval["approve"]:
        return "This call was not made yet, although the user has approved it."
    reason = approval.get("reason")
    return "This call was not made: the user has denied it." + (f" {reason}" if reason else "")


def _mcp_output(item: Json) -> str:
    return str(item["output"]) if item.get("output") is not None else fields_or_status(item, "error")


def _image_prompt(item: Json) -> str:
    return dump({"prompt": item.get("revised_prompt") or ""})


_PAST_CALLS: Final[Mapping[str, PastCall]] = {
    **PAST_CALLS,
    # The server runs no generation of images. The image is too long for a prompt, so the output is the status or the error.
    "image_generation_call": PastCall(
        lambda item: FAMILIES[item["type"]].tool, _image_prompt, lambda item: fields_or_status(item, "error")
    ),
    "mcp_call": PastCall(_mcp_name, lambda item: str(item["arguments"]), _mcp_output),
}
_DROPPED: Final = frozenset({"mcp_list_tools", "mcp_approval_response"})
TYPES: Final = frozenset({*_PAST_CALLS, *_DROPPED, "mcp_approval_request", "program", "program_output"})
