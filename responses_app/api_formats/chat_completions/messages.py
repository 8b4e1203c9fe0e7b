"""Messages of a chat as input items of a response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from responses_app.api_formats.call_results import check_results
from responses_app.api_formats.chat_completions.message_schema import MESSAGES, PARTS, AnswerTextPart
from responses_app.errors import InvalidRequest
from responses_app.validation.base import drop_nulls, validate
from responses_app.validation.errors import Loc, invalid, invalid_value, json_path, missing, wrong_type

Item: TypeAlias = dict[str, Any]
PARTS_OF_ROLES: Mapping[str, tuple[str, ...]] = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text", "image_url", "file"),
}
# As in OpenAI's API.
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages:"
)


def convert_messages(messages: Sequence[object]) -> tuple[list[Item], list[str]]:
    """Return the input items, and the path of each item in the request. Raises InvalidRequest."""
    items: list[Item] = []
    paths: list[str] = []
    # Types of the calls so far, by id: an output has the type of its call.
    calls: dict[str, str] = {}
    for index, raw in enumerate(messages):
        for item, path in _items(raw, ("messages", index), calls):
            items.append(item)
            paths.append(json_path(path))
    check_results(items, paths, UNANSWERED)
    return items, paths


def _items(raw: object, loc: Loc, calls: dict[str, str]) -> Iterator[tuple[Item, Loc]]:
    message = drop_nulls(raw, loc)
    role = message.get("role")
    if role == "function":
        text = f"Unsupported value: '{json_path((*loc, 'role'))}' is 'function'. Send the result in a message with the role 'tool'."
        raise InvalidRequest(text, param=json_path((*loc, "role")), code="unsupported_value")
    if not isinstance(role, str):
        raise missing((*loc, "role")) if role is None else wrong_type(json_path((*loc, "role")), "a string", role)
    if role not in MESSAGES:
        raise invalid_value(json_path((*loc, "role")), role, MESSAGES)
    if role == "assistant":
        message = _without_empty(message, loc)
    fields = validate(MESSAGES[role], message, loc).model_dump(exclude_none=True)
    if role == "assistant":
        yield from _answer(fields, loc, calls)
    elif role == "tool":
        yield _output(fields, loc, calls), loc
    else:
        yield {"type": "message", "role": role, "content": _content(fields["content"], loc, role)}, loc


def _without_empty(message: Item, loc: Loc) -> Item:
    """Drop the fields of older answers that are always empty here. Raises InvalidRequest if one of them is not."""
    for name in ("audio", "function_call"):
        if message.get(name) not in (None, {}):
            where = json_path((*loc, name))
            raise InvalidRequest(f"Unsupported parameter: '{where}'.", param=where, code="unsupported_parameter")
    return {key: value for key, value in message.items() if key not in ("audio", "function_call")}


def _answer(fields: Item, loc: Loc, calls: dict[str, str]) -> Iterator[tuple[Item, Loc]]:
    """Yield the items of an answer in the order in which models write them: reasoning, text, calls."""
    reasoning = fields.get("reasoning_content") or fields.get("reasoning")
    if reasoning:
        yield {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": reasoning}]}, loc
    content = _content(fields.get("content", ""), loc, "assistant")
    if fields.get("refusal"):
        refusal = {"type": "refusal", "refusal": fields["refusal"]}
        content = [*([{"type": "output_text", "text": content}] if isinstance(content, str) and content else content), refusal]
    if content:
        yield {"type": "message", "role": "assistant", "content": content}, loc
    for index, call in enumerate(fields.get("tool_calls", ())):
        yield _call(call, (*loc, "tool_calls", index), calls), (*loc, "tool_calls", index)


def _call(call: Item, loc: Loc, calls: dict[str, str]) -> Item:
    kind = call["type"]
    if kind not in call:
        raise missing((*loc, kind))
    calls[call["id"]] = kind
    if kind == "function":
        function = {key: call["function"][key] for key in ("name", "arguments")}
        return {"type": "function_call", "call_id": call["id"], **function}
    return {"type": "custom_tool_call", "call_id": call["id"], **call["custom"]}


def _output(fields: Item, loc: Loc, calls: Mapping[str, str]) -> Item:
    uid = fields["tool_call_id"]
    if uid not in calls:
        problem = "no earlier message of the assistant has a tool call with this id."
        raise invalid((*loc, "tool_call_id"), problem)
    kind = "custom_tool_call_output" if calls[uid] == "custom" else "function_call_output"
    return {"type": kind, "call_id": uid, "output": _content(fields["content"], loc, "tool")}


def _content(raw: object, loc: Loc, role: str) -> str | list[Item]:
    """Return the content of a message for Responses: a text unchanged, parts with the names of Responses."""
    where = (*loc, "content")
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, list):
        raise wrong_type(json_path(where), "a string or an array", raw)
    return [_part(one, (*where, index), role) for index, one in enumerate(raw)]


def _part(raw: object, loc: Loc, role: str) -> Item:
    part = drop_nulls(raw, loc)
    kind, allowed = part.get("type"), PARTS_OF_ROLES[role]
    if kind is None:
        raise missing((*loc, "type"))
    if kind == "input_audio":
        message = f"Unsupported content part '{kind}' at '{json_path(loc)}': this server takes texts, images and files."
        raise InvalidRequest(message, param=json_path(loc), code="unsupported_value")
    if kind not in allowed:
        raise invalid_value(json_path((*loc, "type")), kind, allowed)
    schema = AnswerTextPart if (role, kind) == ("assistant", "text") else PARTS[kind]
    fields = validate(schema, part, loc).model_dump(exclude_none=True)
    if kind == "refusal":
        return fields
    if kind == "image_url":
        return {"type": "input_image", "image_url": fields["image_url"]["url"], **_detail(fields["image_url"])}
    if kind == "file":
        count = len(fields["file"].keys() & {"file_data", "file_id"})
        if count != 1:
            raise invalid((*loc, kind), f"expected exactly one of 'file_data', 'file_id', but got {count} of them.")
        return {"type": "input_file", **fields["file"]}
    return {"type": "output_text" if role == "assistant" else "input_text", "text": fields["text"]}


def _detail(image: Mapping[str, Any]) -> Item:
    return {"detail": image["detail"]} if "detail" in image else {}
