"""Messages and their blocks as input items of a response."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from responses_app.api_formats.call_results import check_results
from responses_app.api_formats.messages.schema import BLOCKS, SystemOptions
from responses_app.api_formats.messages.tool_changes import TOOL_CHANGES
from responses_app.api_formats.messages.unread import EarlierCodeResult, FoundPage, ToolError
from responses_app.errors import InvalidRequest
from responses_app.validation.base import drop_nulls, validate
from responses_app.validation.errors import Loc, invalid, invalid_value, json_path, missing, unknown_parameter, wrong_type

Item: TypeAlias = dict[str, Any]
Located: TypeAlias = tuple[Item, Loc]
_KEYS = ("role", "content")
_TEXTS = ("text",)
_SHOWN = ("text", "image", "document", "search_result")
# Claude Code begins its instructions with a block of statistics, which differs between conversations: as a part of the prompt, it
# would keep these from sharing the prefix in the cache.
STATISTICS = "x-anthropic-billing-header:"
BLOCKS_OF_ROLES: Mapping[str, tuple[str, ...]] = {
    "user": (*_SHOWN, "tool_result"),
    "assistant": (
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "web_search_tool_result",
        "code_execution_tool_result",
        "mcp_tool_result",
    ),
    "system": (*_TEXTS, *TOOL_CHANGES),
}
KEYS_OF_SOURCES: Mapping[str, frozenset[str]] = {
    "base64": frozenset({"media_type", "data"}),
    "text": frozenset({"media_type", "data"}),
    "url": frozenset({"url"}),
    "file": frozenset({"file_id"}),
    "content": frozenset({"content"}),
}
# Nearly the words of Anthropic's API, where the results have to follow immediately.
UNANSWERED = "`tool_use` ids were found without `tool_result` blocks after:"
# The words of Anthropic's API for models that continue no answer.
NO_PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."
# Separators of JSON.
SPACED, COMPACT = (", ", ": "), (",", ":")
# Types of the items of calls, by the type of the result.
CALLS_OF_RESULTS: Mapping[str, str] = {
    "web_search_tool_result": "web_search_call",
    "code_execution_tool_result": "code_interpreter_call",
    "mcp_tool_result": "mcp_call",
}


@dataclass
class InputItems:
    """Input items so far, the path of each in the request, and the calls by id. Arguments have blanks if `spaced`."""

    spaced: bool = False
    items: list[Item] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    # Path of each part, by the indexes of the item and of the part: a block may be no part, or several.
    parts: dict[tuple[int, int], str] = field(default_factory=dict)
    # Item of each call, by the id of its block: results of the server are added to the item of the call.
    calls: dict[str, Item] = field(default_factory=dict)
    # Names of deferred tools that results refer to.
    loaded_tools: set[str] = field(default_factory=set)
    # Blocks of system messages that add or remove tools.
    tool_changes: list[Located] = field(default_factory=list)
    # Effort that the last system message with an effort asks for.
    effort: str | None = None

    def add(self, messages: Sequence[object]) -> None:
        """Add messages. Raises InvalidRequest."""
        users = [index for index, raw in enumerate(messages) if isinstance(raw, dict) and raw.get("role") == "user"]
        for index, raw in enumerate(messages):
            self._message(raw, ("messages", index), is_past=bool(users) and index < users[-1])
        check_results(self.items, self.paths, UNANSWERED)

    def add_system(self, raw: object) -> None:
        """Add the field `system`. Raises InvalidRequest."""
        if raw is not None:
            texts = [block["text"] for block, _ in _blocks(raw, ("system",), _TEXTS)]
            text = "\n\n".join(text for text in texts if not text.startswith(STATISTICS))
            if text:
                self._append({"type": "message", "role": "system", "content": text}, ("system",))

    def _message(self, raw: object, loc: Loc, *, is_past: bool) -> None:
        """Add a message; `is_past` means that a message of the user follows."""
        message = drop_nulls(raw, loc)
        role = message.get("role")
        if not isinstance(role, str):
            raise missing((*loc, "role")) if role is None else wrong_type(json_path((*loc, "role")), "a string", role)
        if role not in BLOCKS_OF_ROLES:
            raise invalid_value(json_path((*loc, "role")), role, BLOCKS_OF_ROLES)
        options = SystemOptions()
        if role == "system":
            options = validate(SystemOptions, {key: value for key, value in message.items() if key not in _KEYS}, loc)
        elif other := [name for name in message if name not in _KEYS]:
            raise unknown_parameter(json_path((*loc, other[0])))
        if options.output_config is not None:
            self.effort = options.output_config.effort
        elif "content" not in message:
            raise missing((*loc, "content"))
        count, parts = len(self.items), list[Located]()
        for block, at in _blocks(message.get("content", ""), (*loc, "content"), BLOCKS_OF_ROLES[role]):
            if block["type"] in _SHOWN:
                parts += [] if is_past and options.clear_at == "next_user_message" else _parts(block, at, role)
                continue
            if block["type"] in TOOL_CHANGES:
                self.tool_changes.append((block, at))
                continue
            # A call or a result ends the message before it.
            self._flush(parts, role, loc)
            self._block(block, at)
        # An empty message of the user is a message all the same.
        is_empty = role == "user" and not parts and len(self.items) == count
        self._flush([({"type": "input_text", "text": ""}, loc)] if is_empty else parts, role, loc)

    def _flush(self, parts: list[Located], role: str, loc: Loc) -> None:
        if parts:
            self._note_parts(parts)
            self._append({"type": "message", "role": role, "content": [part for part, _ in parts]}, (*loc, "content"))
            parts.clear()

    def _note_parts(self, parts: Sequence[Located]) -> None:
        """Keep the paths of the parts of the next item."""
        self.parts |= {(len(self.items), index): json_path(at) for index, (_, at) in enumerate(parts)}

    def _append(self, item: Item, loc: Loc) -> None:
        self.items.append(item)
        self.paths.append(json_path(loc))

    def _block(self, block: Item, loc: Loc) -> None:
        kind = block["type"]
        if kind in ("thinking", "redacted_thinking"):
            if (reasoning := _reasoning(block)) is not None:
                # Without a text only the encrypted content can be wrong.
                key = "data" if "data" in block else "signature"
                self._append(reasoning, (*loc, key) if "encrypted_content" in reasoning else loc)
        elif kind == "tool_result":
            self._result(block, loc)
        elif kind.endswith("_tool_result"):
            call = self.calls.get(block["tool_use_id"])
            if call is None or call["type"] != CALLS_OF_RESULTS[kind]:
                raise invalid((*loc, "tool_use_id"), "no earlier block is a call with this id and of this tool.")
            call |= _server_result(block, (*loc, "content"))
        else:
            call = _call(block, loc, SPACED if self.spaced else COMPACT)
            self.calls[block["id"]] = call
            self._append(call, loc)

    def _result(self, block: Item, loc: Loc) -> None:
        if block["tool_use_id"] not in self.calls:
            raise invalid((*loc, "tool_use_id"), "no earlier message of the assistant has a 'tool_use' block with this id.")
        raw = block.get("content", "")
        content: list[Located] = []
        for inner, at in _blocks(raw, (*loc, "content"), (*_SHOWN, "tool_reference")):
            if inner["type"] == "tool_reference":
                self.loaded_tools.add(inner["tool_name"])
                inner = {"type": "text", "text": f"The tool {inner['tool_name']} is loaded.\n"}
            content += _parts(inner, at, "user")
        if block.get("is_error"):
            content.insert(0, ({"type": "input_text", "text": "Error: "}, loc))
        texts = all(part["type"] == "input_text" for part, _ in content)
        output: Any = "".join(part["text"] for part, _ in content) if texts else [part for part, _ in content]
        self._note_parts(content)
        self._append({"type": "function_call_output", "call_id": block["tool_use_id"], "output": output}, loc)


def check_end(messages: Sequence[Any]) -> None:
    """Refuse a text of the assistant at the end, which no model of this server continues. Raises InvalidRequest."""
    content = messages[-1]["content"] if messages[-1]["role"] == "assistant" else ""
    if content and (isinstance(content, str) or content[-1]["type"] == "text"):
        raise InvalidRequest(NO_PREFILL, param=json_path(("messages", len(messages) - 1)), code="invalid_value")


def _blocks(raw: object, loc: Loc, allowed: Sequence[str]) -> Iterator[Located]:
    """Yield the checked blocks of a content. Raises InvalidRequest."""
    if isinstance(raw, str):
        yield {"type": "text", "text": raw}, loc
        return
    if not isinstance(raw, list):
        raise wrong_type(json_path(loc), "a string or an array", raw)
    for index, one in enumerate(raw):
        at = (*loc, index)
        block = drop_nulls(one, at)
        kind = block.get("type")
        if kind is None:
            raise missing((*at, "type"))
        if kind not in allowed:
            raise invalid_value(json_path((*at, "type")), kind, allowed)
        yield validate(BLOCKS[kind], block, at).model_dump(exclude_none=True), at


def _parts(block: Item, loc: Loc, role: str) -> list[Located]:
    """Return the parts of a text, an image, a document or a search result. Raises InvalidRequest."""
    if block["type"] == "text":
        kind = "output_text" if role == "assistant" else "input_text"
        return [({"type": kind, "text": block["text"]}, loc)] if block["text"] else []
    if block["type"] == "search_result":
        texts = [inner["text"] for inner, _ in _blocks(block["content"], (*loc, "content"), _TEXTS)]
        return [({"type": "input_text", "text": "\n".join([block["title"], block["source"], *texts, ""])}, loc)]
    source, where = block["source"], (*loc, "source")
    for name in source.keys() - KEYS_OF_SOURCES[source["type"]] - {"type"}:
        raise unknown_parameter(json_path((*where, name)))
    if block["type"] == "image":
        return [({"type": "input_image", **_image(source, where)}, loc)]
    titles = [block[name] for name in ("title", "context") if block.get(name)]
    text: list[Located] = [({"type": "input_text", "text": "\n".join(titles)}, loc)] if titles else []
    if source["type"] == "content":
        inner = _blocks(source.get("content", ""), (*where, "content"), ("text", "image"))
        return [*text, *(part for one, at in inner for part in _parts(one, at, "user"))]
    return [*text, ({"type": "input_file", **_document(source, where)}, loc)]


def _image(source: Item, loc: Loc) -> Item:
    if source["type"] == "base64":
        return {"image_url": _data_url(source, loc)}
    return _reference(source, loc, "image_url")


def _document(source: Item, loc: Loc) -> Item:
    if source["type"] == "base64":
        return {"file_data": _data_url(source, loc)}
    if source["type"] == "text":
        data = base64.b64encode(_required(source, "data", loc).encode()).decode()
        return {"file_data": f"data:text/plain;base64,{data}", "filename": "document.txt"}
    return _reference(source, loc, "file_url")


def _reference(source: Item, loc: Loc, url: str) -> Item:
    if source["type"] == "url":
        return {url: _required(source, "url", loc)}
    if source["type"] == "file":
        return {"file_id": _required(source, "file_id", loc)}
    raise invalid_value(json_path((*loc, "type")), source["type"], "'base64', 'url', 'file'")


def _data_url(source: Item, loc: Loc) -> str:
    return f"data:{_required(source, 'media_type', loc)};base64,{_required(source, 'data', loc)}"


def _required(source: Item, name: str, loc: Loc) -> str:
    if name not in source:
        raise missing((*loc, name))
    return str(source[name])


def _reasoning(block: Item) -> Item | None:
    """Return the reasoning of a block: its text, which other servers have signed their way, or what the signature encrypts."""
    if block.get("thinking"):
        return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": block["thinking"]}]}
    encrypted = block.get("data") or block.get("signature")
    return {"type": "reasoning", "summary": [], "encrypted_content": encrypted} if encrypted else None


def _call(block: Item, loc: Loc, separators: tuple[str, str]) -> Item:
    arguments = json.dumps(block["input"], ensure_ascii=False, separators=separators)
    if block["type"] == "tool_use":
        return {"type": "function_call", "call_id": block["id"], "name": block["name"], "arguments": arguments}
    if block["type"] == "mcp_tool_use":
        return {"type": "mcp_call", "server_label": block["server_name"], "name": block["name"], "arguments": arguments}
    if block["name"] == "web_search":
        query = block["input"].get("query", "")
        if not isinstance(query, str):
            raise wrong_type(json_path((*loc, "input", "query")), "a string", query)
        return {"type": "web_search_call", "action": {"type": "search", "query": query}}
    if block["name"] == "code_execution":
        return {"type": "code_interpreter_call", "code": block["input"].get("code", "")}
    raise invalid_value(json_path((*loc, "name")), block["name"], "'web_search', 'code_execution'")


def _server_result(block: Item, loc: Loc) -> Item:
    """Return the fields that a result, whose content is at `loc`, adds to the item of the call. Raises InvalidRequest."""
    content = block.get("content", {} if block["type"] == "code_execution_tool_result" else [])
    if block["type"] == "mcp_tool_result":
        texts = "".join(inner["text"] for inner, _ in _blocks(content, loc, _TEXTS))
        return {"error": texts} if block.get("is_error") else {"output": texts}
    is_code = block["type"] == "code_execution_tool_result"
    if isinstance(content, dict) and (not is_code or content.get("type") == "code_execution_tool_result_error"):
        validate(ToolError, content, loc)
        return {"status": "failed"}
    if is_code:
        logs = validate(EarlierCodeResult, content, loc).stdout
        return {"outputs": [{"type": "logs", "logs": logs}], "status": "completed"}
    if not isinstance(content, list):
        raise wrong_type(json_path(loc), "an object or an array", content)
    results = [validate(FoundPage, one, (*loc, index)) for index, one in enumerate(content)]
    pages = [{"url": one.url, "title": one.title or ""} for one in results if one.url is not None]
    return {"results": pages, "status": "completed"}
