"""Input items, validated and normalised to the stored form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from responses_app.errors import InvalidRequest
from responses_app.protocol.items.registry import FAMILIES
from responses_app.runs.ids import is_id
from responses_app.schemas import text_format
from responses_app.schemas.client_items import CLIENT_ITEMS
from responses_app.schemas.control_items import CompactionTrigger, ConfigurationUpdate, check_trigger_last
from responses_app.schemas.items import (
    MODELS,
    AdditionalTools,
    CompactionInput,
    ItemReferenceInput,
    MessageInput,
    ReasoningInput,
    valid,
)
from responses_app.schemas.parsing import content as parsing_content
from responses_app.schemas.parsing import tools
from responses_app.schemas.server_items import SERVER_ITEMS
from responses_app.tools.functions.computer import is_action
from responses_app.validation.base import TEXT_LIMIT, check_length, check_tools, count_tools, drop_nulls
from responses_app.validation.errors import Loc, invalid, invalid_value, json_path, missing, missing_type, shorten, wrong_type

# Item type -> prefix of item ids in requests, empty where clients or other servers choose the ids.
ID_PREFIXES = {
    **dict.fromkeys(FAMILIES.id_prefixes, ""),
    **{kind: family.id_prefix.rstrip("_") for kind, family in FAMILIES.items() if family.opened_by},
    # Clients choose ids such as `fco_…` for outputs, so outputs share the prefix of their call.
    "function_call_output": FAMILIES["function_call"].id_prefix.rstrip("_"),
    "custom_tool_call_output": FAMILIES["custom_tool_call"].id_prefix.rstrip("_"),
    **dict.fromkeys(SERVER_ITEMS, ""),
}


def parse_items(raw: object, loc: Loc = ("input",)) -> list[dict[str, Any]]:
    """Parse `input`, a string or an array, to normalised items. Raises InvalidRequest with the JSON path."""
    if isinstance(raw, str):
        if len(raw) > TEXT_LIMIT:
            problem = f"string too long. Expected maximum length {TEXT_LIMIT}, but got {len(raw)}."
            raise invalid(loc, problem, "string_above_max_length")
        return [_message({"role": "user", "content": raw}, loc)]
    if not isinstance(raw, list):
        raise wrong_type(json_path(loc), "a string or an array", raw)
    check_tools(sum(count_tools(one.get("tools")) for one in raw if isinstance(one, dict)), loc)
    items = [_item(one, (*loc, index)) for index, one in enumerate(check_length(raw, loc))]
    check_trigger_last(items, loc)
    return items


def _item(raw: object, loc: Loc) -> dict[str, Any]:
    raw = drop_nulls(raw, loc)
    kind = raw.get("type") or ("message" if "role" in raw else "item_reference" if set(raw) - {"type"} == {"id"} else None)
    if not isinstance(kind, str):
        raise missing_type(loc, kind)
    if kind not in MODELS:
        raise invalid_value(f"{json_path(loc)}.type", kind, MODELS)
    return READERS[kind](raw, loc)


def _id(item: dict[str, Any], loc: Loc) -> dict[str, Any]:
    prefix = ID_PREFIXES[item["type"]]
    uid = item.get("id")
    if uid and not uid.startswith(prefix):
        raise invalid((*loc, "id"), f"'{shorten(uid)}'. Expected an ID that begins with '{prefix}'.")
    if uid and not is_id(uid):
        raise invalid((*loc, "id"), "an ID has up to 128 letters, digits and '_-.:'.")
    return item if uid else {key: value for key, value in item.items() if key != "id"}


def _message(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    item = _id(valid(MessageInput, {"type": "message", **raw, "content": raw.get("content", ...)}, loc), loc)
    content = parsing_content.content(item["content"], (*loc, "content"), parsing_content.PARTS_OF_ROLES[item["role"]])
    return {"status": "completed", **item, "content": content}


def _call(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    return {"status": "completed", **_id(valid(MODELS[raw["type"]], raw, loc), loc)}


def _output(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    item = _id(valid(MODELS[raw["type"]], {"output": None, **raw}, loc), loc)
    output = raw.get("output", ...)
    if not isinstance(output, str):
        output = parsing_content.content(output, (*loc, "output"), parsing_content.INPUT_PARTS)
    return {"status": "completed", **item, "output": output}


def _reasoning(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    return _id(valid(ReasoningInput, raw, loc), loc)


def _compaction(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    return _id(valid(CompactionInput, raw, loc), loc)


def _added_tools(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    item = _id(valid(AdditionalTools, raw, loc), loc)
    return {**item, "tools": tools.read(raw["tools"], (*loc, "tools"), in_item=True)}


def _client_item(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    kind = raw["type"]
    if kind == "local_shell_call_output" and "call_id" not in raw and isinstance(raw.get("id"), str):
        raw = {**{key: value for key, value in raw.items() if key != "id"}, "call_id": raw["id"]}
    item = {"status": "completed", **_id(valid(CLIENT_ITEMS[kind], raw, loc), loc)}
    if "call_id" not in item and item["execution"] == "client":
        raise missing((*loc, "call_id"))
    if kind == "tool_search_output":
        item["tools"] = tools.read(raw["tools"], (*loc, "tools"), has_tool_search=True, in_item=True)
    if kind == "shell_call_output":
        _check_exit_codes(item["output"], (*loc, "output"))
    if kind == "computer_call":
        _check_actions(item, loc)
    if kind == "computer_call_output":
        item["output"] = {
            "type": "computer_screenshot",
            "image_url": parsing_content.image_url(item["output"], (*loc, "output")),
        }
    return item


def _server_item(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    kind = raw["type"]
    item = _id(valid(SERVER_ITEMS[kind], raw, loc), loc)
    return item if kind in FAMILIES.without_status else {"status": "completed", **item}


def _check_actions(item: Mapping[str, Any], loc: Loc) -> None:
    """Require either `action` or `actions` in a computer call. Raises InvalidRequest."""
    if ("action" in item) == ("actions" in item):
        where = json_path((*loc, "actions"))
        message = f"Missing required parameter: '{where}', or 'action' in its place."
        raise InvalidRequest(message, param=where, code="missing_required_parameter")
    each = {("action",): item["action"]} if "action" in item else {("actions", n): one for n, one in enumerate(item["actions"])}
    for place, one in each.items():
        if not is_action(one):
            raise invalid((*loc, *place), "this is no action of a computer.")


def _check_exit_codes(results: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """Require an exit code for each command that has ended. Raises InvalidRequest."""
    for index, result in enumerate(results):
        if result["outcome"]["type"] == "exit" and "exit_code" not in result["outcome"]:
            raise missing((*loc, index, "outcome", "exit_code"))


def _configuration(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    item = _id(valid(ConfigurationUpdate, raw, loc), loc)
    if "text" in item:
        # Parsed from the request itself, as a null within a schema has a meaning.
        output_format = text_format.OutputFormat.model_validate(raw["text"]["format"])
        item["text"] = {"format": text_format.parse_text_format(output_format, (*loc, "text", "format"))}
    return item


def _trigger(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    return {"type": valid(CompactionTrigger, raw, loc)["type"]}


def _reference(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    return {"type": "item_reference", "id": valid(ItemReferenceInput, raw, loc)["id"]}


READERS: Mapping[str, Callable[[Mapping[str, Any], Loc], dict[str, Any]]] = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _output,
    "custom_tool_call": _call,
    "custom_tool_call_output": _output,
    "reasoning": _reasoning,
    "compaction": _compaction,
    "additional_tools": _added_tools,
    "configuration_update": _configuration,
    "compaction_trigger": _trigger,
    "item_reference": _reference,
    **dict.fromkeys(CLIENT_ITEMS, _client_item),
    **dict.fromkeys(SERVER_ITEMS, _server_item),
}
