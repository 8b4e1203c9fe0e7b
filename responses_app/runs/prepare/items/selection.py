"""Selection of the items of a prompt: resolved references, checked pairs of calls and outputs, compaction, configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from responses_app.dialects.content import ImageReference, iter_images
from responses_app.errors import InvalidRequest, NotFound
from responses_app.protocol.items.registry import FAMILIES
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.ids import new_id
from responses_app.runs.prepare import encrypted_content
from responses_app.runs.prepare.items.summary import QUESTION, summary_request
from responses_app.runs.server_tools import approvals

OUTPUTS = FAMILIES.calls_by_output
CALLS = frozenset(OUTPUTS.values())


@dataclass(frozen=True, slots=True)
class SelectedItems:
    """Items of the prompt, the request as items of the conversation change it, and the images of the items.

    `input_items` are the items of the request, all with ids. `answered` are the ids of the approval requests that the request answers.
    """

    create_request: CreateRequest
    input_items: Sequence[dict[str, Any]]
    items: Sequence[Mapping[str, Any]]
    references: Sequence[ImageReference]
    answered: Sequence[str]


def select_new(
    create_request: CreateRequest, before: Sequence[dict[str, Any]], stored_items: Mapping[str, dict[str, Any]]
) -> SelectedItems:
    """Select the items of the prompt of a new response, as `select`. `stored_items` replace items of the request with the same ids.

    Raises NotFound, and InvalidRequest also for an id that occurs twice: pagination by item id would go in circles.
    """
    input_items = with_ids(create_request.input, stored_items)
    seen = {item["id"] for item in before}
    for item in input_items:
        if item["id"] in seen:
            message = f"Duplicate item found with id {item['id']}. Remove duplicate items from your input and try again."
            raise InvalidRequest(message, param="input")
        seen.add(item["id"])
    return select(create_request, before, input_items)


def select(
    create_request: CreateRequest, before: Sequence[dict[str, Any]], input_items: Sequence[dict[str, Any]]
) -> SelectedItems:
    """Decrypt and check the items of a context, and select the items of the prompt. Raises InvalidRequest.

    `before` are the items that the request continues, `input_items` those of the request.
    """
    create_request, items = apply_configuration(
        create_request, encrypted_content.decrypt_items(create_request, before, input_items)
    )
    items = check_call_pairs(apply_compaction(assign_call_ids(items)))
    answered = approvals.check_approvals(create_request, items, input_items)
    require_json_word(create_request, items)
    if create_request.compacts:
        create_request, items = summary_request(create_request), [*items, QUESTION]
    return SelectedItems(create_request, input_items, items, list(iter_images(items)), answered)


def with_ids(
    sent_items: Sequence[dict[str, Any]], stored_items: Mapping[str, dict[str, Any]], param: str = "input"
) -> list[dict[str, Any]]:
    """Give every item an id, and replace each reference by the item in `stored_items`. Raises NotFound."""
    items = []
    for item in sent_items:
        stored = stored_items.get(item.get("id", ""))
        if stored is not None and item["type"] in (stored["type"], "item_reference"):
            items.append(stored)
        elif item["type"] != "item_reference":
            items.append(item if "id" in item else {"id": new_id(FAMILIES.id_prefixes[item["type"]]), **item})
        else:
            raise NotFound(
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. "
                "Try again with `store` set to true, or remove this item from your input.",
                param=param,
            )
    return items


def check_call_pairs(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the items for the prompt. Raises InvalidRequest for an output without a call, and for a call without an output.

    A call that is `incomplete` is left out: it was cut off and cannot be answered.
    """
    remaining = [item for item in items if not (item["type"] in CALLS and item.get("status") == "incomplete")]
    calls = {item["call_id"]: item for item in remaining if item["type"] in CALLS}
    answered = set()
    last = {item["call_id"]: place for place, item in enumerate(remaining) if item["type"] in OUTPUTS}
    for item in remaining:
        if item["type"] not in OUTPUTS:
            continue
        if item["call_id"] not in calls:
            raise InvalidRequest(f"No tool call found for function call output with call_id {item['call_id']}.", param="input")
        answered.add(item["call_id"])
    _all_answered(calls.values(), answered)
    # Of several outputs of one call the latest counts, as at OpenAI.
    return [item for place, item in enumerate(remaining) if item["type"] not in OUTPUTS or last[item["call_id"]] == place]


def assign_call_ids(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Give every call and every output a `call_id`.

    An output of a local shell may name the item id of its call. A tool search by a server, and its output, have no `call_id`.
    """
    calls = {item["id"]: item["call_id"] for item in items if item["type"] == "local_shell_call"}
    made, search = list[Mapping[str, Any]](), None
    for item in items:
        if item["type"] == "tool_search_call" and "call_id" not in item:
            search = item["id"]
        unnamed = item["type"] in ("tool_search_call", "tool_search_output") and "call_id" not in item
        call_id = search if unnamed else calls.get(item.get("call_id", ""))
        made.append({**item, "call_id": call_id} if unnamed or call_id else item)
    return made


def _all_answered(calls: Iterable[Mapping[str, Any]], answered: set[str]) -> None:
    for call in calls:
        if call["call_id"] not in answered and not call.get("async"):
            raise InvalidRequest(f"No tool output found for function call {call['call_id']}.", param="input")


def apply_compaction(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Replace all output of the model before the newest compaction by the summary; other messages stay.

    A call with an output behind the compaction stays, and so does a request for an approval with an answer there.
    A compaction that cannot be decrypted is ignored.
    """
    last = max((place for place, item in enumerate(items) if item.get("summary") and item["type"] == "compaction"), default=-1)
    later = items[last + 1 :]
    answered = {item["call_id"] for item in later if item["type"] in OUTPUTS}
    answered |= {item["approval_request_id"] for item in later if item["type"] == "mcp_approval_response"}
    remaining = [item for item in items[: max(last, 0)] if _survives_compaction(item, answered)]
    remaining += [_summary(items[last])] if last >= 0 else []
    return [*remaining, *(item for item in items[last + 1 :] if item["type"] != "compaction")]


def _survives_compaction(item: Mapping[str, Any], answered: set[str]) -> bool:
    if item["type"] in CALLS:
        return item["call_id"] in answered
    if item["type"] == "mcp_approval_request":
        return item["id"] in answered
    return item["type"] == "additional_tools" or bool(item["type"] == "message" and item["role"] != "assistant")


def _summary(item: Mapping[str, Any]) -> dict[str, Any]:
    text = f"Summary of what was said and done so far:\n{item['summary']}"
    return {"type": "message", "id": item["id"], "role": "developer", "content": [{"type": "input_text", "text": text}]}


def apply_configuration(
    create_request: CreateRequest, items: Sequence[Mapping[str, Any]]
) -> tuple[CreateRequest, list[Mapping[str, Any]]]:
    """Apply the `configuration_update` items to the request in order. Return the request and the other items."""
    effort, form = None, None
    for item in items:
        if item["type"] == "configuration_update":
            effort = item.get("reasoning", {}).get("effort") or effort
            form = item.get("text", {}).get("format") or form
    reasoning = {**(create_request.reasoning or {}), "effort": effort} if effort else create_request.reasoning
    remaining = [item for item in items if item["type"] != "configuration_update"]
    if effort is None and form is None:
        return create_request, remaining
    return replace(create_request, reasoning=reasoning, format=form or create_request.format), remaining


def drop_earlier_reasoning(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Drop the reasoning of earlier turns, for `reasoning.context: current_turn`."""
    requested = max((place for place, item in enumerate(items) if item.get("role") == "user"), default=0)
    return [item for place, item in enumerate(items) if place > requested or item["type"] != "reasoning"]


def require_json_word(create_request: CreateRequest, items: Sequence[Mapping[str, Any]]) -> None:
    """Check that a context for `json_object` has the word JSON: otherwise a model may write endless white space. Raises InvalidRequest."""
    if create_request.format["type"] != "json_object" or "json" in (create_request.instructions or "").lower():
        return
    texts = (part.get("text", "") for item in items if item["type"] == "message" for part in item["content"])
    if not any("json" in text.lower() for text in texts):
        raise InvalidRequest(
            "The input must contain the word 'json' in some form to use 'text.format' of type 'json_object'.", param="input"
        )
