"""Input items: what may be told to the model, normalised to the form in which it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from responses_app.api import formats, tools
from responses_app.api.base import NAME, TEXT_LIMIT, Caller, CallId, LongText, Status, Strict, given
from responses_app.api.client_items import CLIENT_ITEMS, CLIENT_PREFIXES
from responses_app.api.controls import ConfigurationUpdate, Trigger, final
from responses_app.api.problems import Loc, path, shorten, translate, untyped, value, wrong_type
from responses_app.errors import Invalid
from responses_app.grammar.ids import PREFIXES
from responses_app.images.picture import BadImage, is_data, media_type
from responses_app.runs import images
from responses_app.runs.ids import could_be

IMAGE_URL_LIMIT = 20_971_520
# What openai-python adds to its own objects: values that it parsed out of the text and the arguments beside them.
COPIES = frozenset({"parsed", "parsed_arguments"})


class Thought(Strict):
    """A part of a reasoning item's `content`."""

    type: Literal["reasoning_text"]
    text: LongText


class Summary(Strict):
    """A part of a reasoning item's `summary`."""

    type: Literal["summary_text"]
    text: LongText


class Part(Strict):
    """A part of text, whichever way it goes; annotations and logprobs come back from clients that replay our output."""

    type: str
    text: LongText
    annotations: list[dict[str, Any]] | None = None
    logprobs: list[dict[str, Any]] | None = None
    prompt_cache_breakpoint: dict[str, Any] | None = None


class ImagePart(Strict):
    """A picture, by a data URL or an address."""

    type: Literal["input_image"]
    image_url: Annotated[str, Field(max_length=IMAGE_URL_LIMIT)] | None = None
    file_id: str | None = None
    detail: Literal["low", "high", "auto", "original"] = "auto"
    prompt_cache_breakpoint: dict[str, Any] | None = None


class RefusalPart(Strict):
    """A refusal that the model gave earlier."""

    type: str
    refusal: LongText


class Message(Strict):
    """A message; its content is checked part by part."""

    type: Literal["message"] = "message"
    id: str | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: Any
    status: Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCall(Strict):
    """A call that the model made."""

    type: Literal["function_call"]
    id: str | None = None
    call_id: CallId
    name: Annotated[str, Field(min_length=1, max_length=128, pattern=NAME)]
    arguments: LongText
    status: Status | None = None
    async_: bool | None = Field(default=None, alias="async")
    caller: Caller | None = None
    namespace: str | None = None


class FunctionCallOutput(Strict):
    """What the client's tool returned."""

    type: Literal["function_call_output"]
    id: str | None = None
    call_id: CallId
    output: Any
    status: Status | None = None
    name: str | None = None
    caller: Caller | None = None
    namespace: str | None = None
    created_by: str | None = None


class CustomCall(Strict):
    """A call of a custom tool."""

    type: Literal["custom_tool_call"]
    id: str | None = None
    call_id: CallId
    name: Annotated[str, Field(min_length=1, max_length=128, pattern=NAME)]
    input: LongText
    status: Status | None = None
    async_: bool | None = Field(default=None, alias="async")
    caller: Caller | None = None
    namespace: str | None = None
    created_by: str | None = None


class CustomCallOutput(Strict):
    """What a custom tool gave back."""

    type: Literal["custom_tool_call_output"]
    id: str | None = None
    call_id: CallId
    output: Any = None
    status: Status | None = None
    caller: Caller | None = None
    created_by: str | None = None


class Reasoning(Strict):
    """Reasoning of an earlier turn, raw or summarised."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: list[Summary] = Field(default_factory=list)
    content: list[Thought] | None = None
    encrypted_content: str | None = None
    status: Status | None = None


class Compaction(Strict):
    """What was said before, as a token of this server."""

    type: Literal["compaction"]
    id: str | None = None
    encrypted_content: LongText
    created_by: str | None = None


class AdditionalTools(Strict):
    """Tools that are offered from here on."""

    type: Literal["additional_tools"]
    id: str | None = None
    role: Literal["developer"]
    tools: Annotated[list[Any], Field(min_length=1)]


class Reference(Strict):
    """An item of the store, by id."""

    type: Literal["item_reference"] | None = None
    id: str


MODELS: Mapping[str, type[Strict]] = {
    "message": Message,
    "function_call": FunctionCall,
    "function_call_output": FunctionCallOutput,
    "custom_tool_call": CustomCall,
    "custom_tool_call_output": CustomCallOutput,
    "reasoning": Reasoning,
    "compaction": Compaction,
    "additional_tools": AdditionalTools,
    "configuration_update": ConfigurationUpdate,
    "compaction_trigger": Trigger,
    "item_reference": Reference,
    **CLIENT_ITEMS,
}
INPUT_PARTS = ("input_text", "input_image")
RULE_PARTS = ("input_text",)
OUTPUT_PARTS = ("output_text", "refusal")
# Parts of the protocol that this server does not take; naming them gives a better error than "unknown".
UNSUPPORTED_PARTS = frozenset({"input_file", "input_audio"})
PARTS_OF_ROLES: Mapping[str, tuple[str, ...]] = {
    "user": INPUT_PARTS,
    "assistant": OUTPUT_PARTS,
    "system": RULE_PARTS,
    "developer": RULE_PARTS,
}
# The prefix is validated (responses-api.md §1.0); clients make ids of their own, such as `fco_…`, so an output shares its call's.
ID_PREFIXES = {
    kind: PREFIXES[kind].rstrip("_") for kind in ("message", "function_call", "custom_tool_call", "reasoning", "compaction")
} | {
    "function_call_output": "fc",
    "custom_tool_call_output": "ctc",
    # No prefix is known: clients make these ids themselves.
    "additional_tools": "",
    "configuration_update": "",
    **CLIENT_PREFIXES,
}


def read(raw: object, loc: Loc = ("input",)) -> list[dict[str, Any]]:
    """A request's `input`, a string or an array, as normalised items. Raises Invalid with the JSON path."""
    if isinstance(raw, str):
        if len(raw) > TEXT_LIMIT:
            raise Invalid(
                f"Invalid '{path(loc)}': string too long. Expected maximum length {TEXT_LIMIT}, but got {len(raw)}.",
                param=path(loc),
                code="string_above_max_length",
            )
        return [_message({"role": "user", "content": raw}, loc)]
    if not isinstance(raw, list):
        raise wrong_type(path(loc), "a string or an array", raw)
    items = [_item(one, (*loc, index)) for index, one in enumerate(raw)]
    final(items, loc)
    return items


def _item(raw: object, loc: Loc) -> dict[str, Any]:
    raw = given(raw, loc)
    kind = raw.get("type") or ("message" if "role" in raw else "item_reference" if set(raw) - {"type"} == {"id"} else None)
    if not isinstance(kind, str):
        raise untyped(f"{path(loc)}.type", kind)
    if kind not in MODELS:
        raise value(f"{path(loc)}.type", kind, _list(MODELS))
    return READERS[kind](raw, loc)


def _valid(model: type[Strict], raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    """`raw` validated; keys that are absent are left out."""
    try:
        valid = model.model_validate({key: said for key, said in raw.items() if key not in COPIES})
        return valid.model_dump(exclude_none=True, by_alias=True)
    except ValidationError as error:
        raise translate(error, loc, model.model_fields) from error


def _id(item: dict[str, Any], loc: Loc) -> dict[str, Any]:
    prefix = ID_PREFIXES[item["type"]]
    uid = item.get("id")
    if uid and not uid.startswith(prefix):
        where = path((*loc, "id"))
        message = f"Invalid '{where}': '{shorten(uid)}'. Expected an ID that begins with '{prefix}'."
        raise Invalid(message, param=where, code="invalid_value")
    if uid and not could_be(uid):
        where = path((*loc, "id"))
        raise Invalid(f"Invalid '{where}': an ID has up to 128 letters, digits and '_-.:'.", param=where, code="invalid_value")
    return item if uid else {key: value for key, value in item.items() if key != "id"}


def _message(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    item = _id(_valid(Message, {"type": "message", **raw, "content": raw.get("content", ...)}, loc), loc)
    content = _content(item["content"], (*loc, "content"), PARTS_OF_ROLES[item["role"]])
    return {"status": "completed", **item, "content": content}


def _content(raw: object, loc: Loc, allowed: tuple[str, ...]) -> list[dict[str, Any]]:
    if raw is ...:
        raise Invalid(f"Missing required parameter: '{path(loc)}'.", param=path(loc), code="missing_required_parameter")
    if isinstance(raw, str):
        return [_part({"type": allowed[0], "text": raw}, loc, allowed)]
    if not isinstance(raw, list):
        raise wrong_type(path(loc), "a string or an array", raw)
    return [_part(one, (*loc, index), allowed) for index, one in enumerate(raw)]


def _part(raw: object, loc: Loc, allowed: tuple[str, ...]) -> dict[str, Any]:
    raw = given(raw, loc)
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise untyped(f"{path(loc)}.type", kind)
    if kind in UNSUPPORTED_PARTS:
        message = f"Unsupported content part '{kind}' at '{path(loc)}': this server takes texts and images."
        raise Invalid(message, param=path(loc), code="unsupported_value")
    if kind == "input_image" and allowed is RULE_PARTS:
        message = f"Unsupported content part '{kind}' at '{path(loc)}': images are taken in messages of the user and in outputs of tools."
        raise Invalid(message, param=path(loc), code="unsupported_value")
    if kind not in allowed:
        raise value(f"{path(loc)}.type", kind, _list(allowed))
    if kind == "refusal":
        return _valid(RefusalPart, raw, loc)
    if kind == "input_image":
        return _image(raw, loc)
    part = _valid(Part, raw, loc)
    if kind == "output_text":
        return {
            "type": kind,
            "text": part["text"],
            "annotations": part.get("annotations", []),
            "logprobs": part.get("logprobs", []),
        }
    return {"type": kind, "text": part["text"]}


def _image(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    """What can be told of a picture without decoding or fetching it; the rest is seen by `runs.images`."""
    part = _valid(ImagePart, raw, loc)
    if "file_id" in part:
        where = path((*loc, "file_id"))
        message = f"Unsupported parameter: '{where}': this server has no files; give the image in 'image_url'."
        raise Invalid(message, param=where, code="unsupported_parameter")
    where = path((*loc, "image_url"))
    url = part.get("image_url")
    if not url:
        raise Invalid(f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter")
    check = media_type if is_data(url) else images.web().check
    try:
        check(url)
    except BadImage as error:
        raise Invalid(f"Invalid '{where}'. {error}", param=where, code=error.code) from error
    return {"type": "input_image", "detail": part["detail"], "image_url": url}


def _call(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    return {"status": "completed", **_id(_valid(MODELS[raw["type"]], raw, loc), loc)}


def _output(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    item = _id(_valid(MODELS[raw["type"]], {"output": None, **raw}, loc), loc)
    output = raw.get("output", ...)
    if not isinstance(output, str):
        output = _content(output, (*loc, "output"), INPUT_PARTS)
    return {"status": "completed", **item, "output": output}


def _reasoning(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    return _id(_valid(Reasoning, raw, loc), loc)


def _compaction(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    return _id(_valid(Compaction, raw, loc), loc)


def _added_tools(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    item = _id(_valid(AdditionalTools, raw, loc), loc)
    return {**item, "tools": tools.read(raw["tools"], (*loc, "tools"))}


def _client_item(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    kind = raw["type"]
    if kind == "local_shell_call_output" and "call_id" not in raw and "id" in raw:
        raw = {**{key: said for key, said in raw.items() if key != "id"}, "call_id": raw["id"]}
    item = {"status": "completed", **_id(_valid(CLIENT_ITEMS[kind], raw, loc), loc)}
    if kind == "tool_search_output":
        item["tools"] = tools.read(raw["tools"], (*loc, "tools"), found=True)
    if kind == "shell_call_output":
        _ended(item["output"], (*loc, "output"))
    return item


def _ended(results: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """A command that came to its end has an exit code. Raises Invalid."""
    for index, result in enumerate(results):
        if result["outcome"]["type"] == "exit" and "exit_code" not in result["outcome"]:
            where = path((*loc, index, "outcome", "exit_code"))
            raise Invalid(f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter")


def _configuration(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    item = _id(_valid(ConfigurationUpdate, raw, loc), loc)
    if "text" in item:
        # Of what was sent: a null within a schema means something.
        wanted = formats.Format.model_validate(raw["text"]["format"])
        item["text"] = {"format": formats.read(wanted, (*loc, "text", "format"))}
    return item


def _trigger(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    return {"type": _valid(Trigger, raw, loc)["type"]}


def _reference(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    return {"type": "item_reference", "id": _valid(Reference, raw, loc)["id"]}


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
}


def _list(names: object) -> str:
    return ", ".join(f"'{name}'" for name in names)  # type: ignore[attr-defined]
