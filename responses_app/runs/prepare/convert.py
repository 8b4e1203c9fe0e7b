"""Stage `convert`: turns items and tools into the turn that a dialect renders. Pure: reads no rows and decodes no bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.errors import InvalidRequest
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.items.selection import drop_earlier_reasoning
from responses_app.runs.prepare.long_work import WorkSize
from responses_app.runs.prepare.media import KEY_PREFIX, Items, iter_documents
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.store.content.images import ImageBytes
from responses_app.tools.base import ToolOffer
from responses_app.tools.functions import as_functions
from responses_app.tools.functions.as_functions import Origins
from responses_app.tools.outputs.output_limit import limit_tool_output


@dataclass(frozen=True, slots=True)
class ConvertedTurn:
    """Turn whose tools are all functions, and the declared tools behind these."""

    turn: Turn
    origins: Origins


def work_size(context: PromptContext) -> WorkSize:
    """Return the size of the work of converting and rendering the prompt."""
    request, offer = context.create_request, context.offer
    tools = request.tools if offer is None else [*request.tools, *offer.functions]
    files = [text for (_, key), text in context.images.items() if key.startswith(KEY_PREFIX)]
    return long_work.size_of(context.items, tools, (request.instructions, request.format, files))


def convert(context: PromptContext) -> ConvertedTurn:
    """Convert the items and the tools. Raises InvalidRequest."""
    with context.map_errors(context.items):
        turn = _turn(context, _with_texts(context.items, context.images))
        if context.offer is not None:
            turn = _with_server_tools(turn, context.offer, withholds=context.withholds_tools)
    return ConvertedTurn(*as_functions.to_functions(turn, context.grammars.ebnf))


def _with_texts(items: Items, texts: ImageBytes) -> Items:
    """Return the items with each file replaced by the text. Raises UnsupportedInput for a text that is not stored."""
    blocks: dict[int, dict[str, str]] = {}
    for document in iter_documents(items):
        text = texts.get(document.key)
        if text is None:
            raise UnsupportedInput("The text of the file is not stored any more.", document.path, "file_not_found")
        index = int(document.path[len("input[") :].partition("]")[0])
        blocks.setdefault(index, {})[document.place] = text.decode()
    return (
        [_with_blocks(item, blocks[index]) if index in blocks else item for index, item in enumerate(items)]
        if blocks
        else items
    )


def _with_blocks(item: Mapping[str, Any], blocks: Mapping[str, str]) -> Mapping[str, Any]:
    key = "output" if "output" in item else "content"
    parts = [
        {"type": "input_text", "text": blocks[f"{key}[{at}]"]} if f"{key}[{at}]" in blocks else part
        for at, part in enumerate(item[key])
    ]
    return {**item, key: parts}


def _turn(context: PromptContext, items: Items) -> Turn:
    """Return the turn for `items`. Tools that are not listed yet cannot be chosen."""
    create_request, defaults, shown = context.create_request, context.served.defaults, context.pictures.shown
    reasoning = create_request.reasoning or {}
    max_bytes = settings.RESPONSES_TOOL_RESULT_PROMPT_BYTES
    items = [limit_tool_output(item, max_bytes, shown.get(item.get("id", ""))) for item in items]
    return Turn(
        items=drop_earlier_reasoning(items) if reasoning.get("context") == "current_turn" else items,
        today=context.today,
        instructions=create_request.instructions,
        tools=create_request.tools,
        tool_choice="auto" if context.openings else create_request.tool_choice,
        parallel_tool_calls=create_request.parallel_tool_calls,
        effort=reasoning.get("effort"),
        all_reasoning=reasoning.get("context") == "all_turns",
        format=create_request.format,
        json_whitespace=defaults.json_whitespace or settings.RESPONSES_JSON_WHITESPACE,
        schema_limits=defaults.schema_limits,
        max_reasoning_length=defaults.max_reasoning_length,
        max_repetitions=defaults.max_repetitions,
        token_cache=context.token_cache,
    )


def _with_server_tools(turn: Turn, offer: ToolOffer, *, withholds: bool) -> Turn:
    """Return the turn with the tools of the server as functions. Raises UnsupportedInput for absent tools.

    Raises InvalidRequest for a name used twice.
    """
    names = as_functions.offered_names(turn)
    taken = as_functions.taken_name(names, offer.functions)
    if taken is not None:
        message = (
            f"Invalid 'tools': the name '{taken}' belongs to a tool that the server runs for this request; rename your tool."
        )
        raise InvalidRequest(message, param="tools", code="invalid_value")
    choice, functions = offer.tool_choice(turn.tool_choice), offer.functions
    if choice == "required" and not functions and not names:
        raise UnsupportedInput(
            "'tool_choice' requires a call, but the MCP servers offer no tool.", "tool_choice", "invalid_value"
        )
    if withholds and not isinstance(choice, str) and "tools" in choice:
        withheld = {function["name"] for function in functions}
        choice = {**choice, "tools": [entry for entry in choice["tools"] if entry.get("name") not in withheld]}
    return replace(turn, tools=turn.tools if withholds else [*turn.tools, *functions], tool_choice=choice)
