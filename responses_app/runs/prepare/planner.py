"""Planner: turns a request and the history into an engine request (prompt, constraint, sampling) and a parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from responses_app.dialects import content
from responses_app.dialects.base import OutputParser
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.engine_interface import GenerateRequest
from responses_app.errors import InvalidRequest
from responses_app.protocol.deltas import Delta
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare import (
    context,
    conversation,
    definitions,
    encrypted_content,
    images,
    long_work,
)
from responses_app.runs.prepare.engine_request import build_engine_request, client_path, map_engine_down, session_id
from responses_app.runs.prepare.summary import QUESTION, CompactionParser, summary_request
from responses_app.runs.server_tools import approvals, executors
from responses_app.store.content import tool_outputs
from responses_app.store.content.history import ConversationContext
from responses_app.store.content.images import ImageBytes
from responses_app.tools.base import ToolExecutor, ToolOffer


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """Prepared request: everything that a run needs to begin.

    `before` is the context that the request continues, `own` are its own items, `items` all items of the prompt. `images` are the
    images of all items of the prompt, `fetched` those that must be stored with the items. `parser` parses the answer.
    """

    before: ConversationContext
    own: Sequence[dict[str, object]]
    items: Sequence[Mapping[str, Any]]
    images: ImageBytes
    fetched: ImageBytes
    request: GenerateRequest
    parser: OutputParser
    # The request as items of the conversation change it, and the date that prompts name: for the prompts of further rounds.
    create_request: CreateRequest
    today: date
    # Tools that the server runs: those offered in the first round, and the items to run before. With openings the first round
    # generates nothing, and `request` only shows that the prompt fits.
    offer: ToolOffer | None = None
    openings: Sequence[Delta] = ()


async def plan(
    uid: str,
    create_request: CreateRequest,
    served: ServedModel,
    before: ConversationContext | None = None,
    *,
    tools: ToolExecutor | None = None,
    measure: bool = False,
    memo: TokenCache | None = None,
) -> PreparedRequest:
    """Prepare the response `uid`; nothing is stored. With `measure` the length of the prompt is known. Raises ApiError.

    `before` is the context that the request continues; None has it looked up. `tools` are run by the server. `memo` caches the
    tokens of the context.
    """
    await definitions.check(create_request.project, create_request.tools, create_request.input)
    await executors.check_resources(create_request.project, create_request.tools)
    if before is None:
        before = await _before(create_request)
    own = await context.resolve_items(create_request)
    is_large = len(before.items) + len(own) > long_work.LONG_ITEMS
    effective, items, references = await long_work.apart(
        create_request.project, is_large, partial(_prepared, create_request, before.items, own)
    )
    await approvals.check_unused(create_request, items, own)
    items = await tool_outputs.with_outputs(create_request.project, items, before.tool_outputs)
    uids = [one["id"] for one in own]
    with map_engine_down(served):
        _check_vision(effective, served, items, references, uids)
    new = await images.new_images(create_request.project, create_request.input, own)
    past = before.images if before.images is not None else await images.previous_images(before.keys, before.items)
    images_by_url = {**past, **new}
    today = datetime.now(UTC).date()
    offer, openings = await _server_tools(tools, items)
    request, parser = await build_engine_request(
        uid,
        _without_choice(effective) if openings else effective,
        served,
        items,
        images_by_url,
        uids,
        today=today,
        offer=offer,
        measure=measure,
        memo=memo,
        session=session_id(create_request, before.thread, uid),
    )
    fetched = images.fetched({**_images_of(before.unsaved, past), **new})
    return PreparedRequest(
        before, own, items, images_by_url, fetched, request, _parser(create_request, parser), effective, today, offer, openings
    )


async def replan(
    uid: str,
    create_request: CreateRequest,
    served: ServedModel,
    before: ConversationContext,
    own: ConversationContext,
    today: date,
    tools: ToolExecutor | None = None,
) -> PreparedRequest:
    """Prepare the response `uid` again, from the stored input items `own` and the date of the first start. Raises ApiError."""
    effective, items = _items_for_model(create_request, before.items, own.items)
    items = await tool_outputs.with_outputs(create_request.project, items)
    keys, everything = [*before.keys, *own.keys], [*before.items, *own.items]
    images_by_url = await images.previous_images(keys, everything)
    uids = [one["id"] for one in own.items]
    offer, openings = await _server_tools(tools, items)
    effective_first = _without_choice(effective) if openings else effective
    session = session_id(create_request, before.thread, uid)
    request, parser = await build_engine_request(
        uid, effective_first, served, items, images_by_url, uids, today=today, offer=offer, session=session
    )
    return PreparedRequest(
        before, own.items, items, images_by_url, {}, request, _parser(create_request, parser), effective, today, offer, openings
    )


async def plan_round(
    uid: str,
    plan: PreparedRequest,
    served: ServedModel,
    output: Sequence[Mapping[str, Any]],
    spent: int,
    offer: ToolOffer | None,
    *,
    is_first: bool = False,
    withholds: bool = False,
    measure: bool = False,
) -> tuple[GenerateRequest, OutputParser]:
    """Build the engine request `uid` and the parser of a further round. Raises ApiError.

    `output` are the items of the response so far, with the outputs of server tools for the model. `spent` are its output tokens so
    far. A tool choice that forces a call holds for the first round with a generation only (`is_first`): otherwise the model could
    never answer. With `withholds` the model is not offered the tools of the server. With `measure` the length of the prompt is known.
    """
    create_request = plan.create_request
    choice = create_request.tool_choice if is_first else _free_choice(create_request.tool_choice)
    left = None if create_request.max_output_tokens is None else create_request.max_output_tokens - spent
    create_request = replace(create_request, tool_choice=choice, max_output_tokens=left)
    items = [*plan.items, *output]
    return await build_engine_request(
        uid,
        create_request,
        served,
        items,
        plan.images,
        today=plan.today,
        offer=offer,
        session=plan.request.session,
        withholds=withholds,
        measure=measure,
    )


def _free_choice(choice: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    """Return the tool choice without a forced call."""
    if isinstance(choice, str):
        return "none" if choice == "none" else "auto"
    return {**choice, "mode": "auto"} if choice.get("type") == "allowed_tools" else "auto"


async def _server_tools(
    tools: ToolExecutor | None, items: Sequence[Mapping[str, Any]]
) -> tuple[ToolOffer | None, Sequence[Delta]]:
    """Return the tools that are offered in the first round, and the openings of items that must be run before."""
    if tools is None:
        return None, ()
    await tools.prepare(items)
    return tools.offer(items), tools.openings(items)


def _without_choice(create_request: CreateRequest) -> CreateRequest:
    """Return the request without a tool choice, which may name tools that are not listed yet."""
    return replace(create_request, tool_choice="auto")


def _prepared(
    create_request: CreateRequest, before: Sequence[dict[str, Any]], own: Sequence[dict[str, Any]]
) -> tuple[CreateRequest, Sequence[Mapping[str, Any]], Sequence[content.ImageReference]]:
    """Return the request and the items of the prompt as `_items_for_model`, and the images of the items. Raises InvalidRequest."""
    context.check_unique(before, own)
    effective, items = _items_for_model(create_request, before, own)
    return effective, items, list(content.iter_images(items))


def _items_for_model(
    create_request: CreateRequest, before: Sequence[dict[str, Any]], own: Sequence[dict[str, Any]]
) -> tuple[CreateRequest, Sequence[Mapping[str, Any]]]:
    """Return the request as items of the conversation change it, and the items of the prompt. Raises InvalidRequest."""
    create_request, items = context.apply_configuration(
        create_request, encrypted_content.decrypt_items(create_request, before, own)
    )
    items = context.check_call_pairs(context.apply_compaction(context.assign_call_ids(items)))
    approvals.check_approvals(create_request, items, own)
    context.require_json_word(create_request, items)
    return (summary_request(create_request), [*items, QUESTION]) if create_request.compacts else (create_request, items)


def _images_of(items: Sequence[Mapping[str, Any]], images_by_url: ImageBytes) -> ImageBytes:
    """Return the images of `items`."""
    uids = {item["id"] for item in items}
    return {key: data for key, data in images_by_url.items() if key[0] in uids}


def _parser(create_request: CreateRequest, parser: OutputParser) -> OutputParser:
    return CompactionParser(parser, create_request.project) if create_request.compacts else parser


async def _before(create_request: CreateRequest) -> ConversationContext:
    """Return the context that the request continues: a conversation, another response, or nothing. Raises ApiError."""
    if create_request.conversation is not None:
        return await conversation.context(create_request.project, create_request.conversation)
    return await context.previous_context(create_request)


def _check_vision(
    create_request: CreateRequest,
    served: ServedModel,
    items: Sequence[Mapping[str, Any]],
    references: Sequence[content.ImageReference],
    own: Sequence[object],
) -> None:
    """Refuse images for a model without vision, before any image is decoded. Raises InvalidRequest for the newest image."""
    if references and not served.supports_images:
        where = client_path(references[-1].path, create_request, items, own) or "input"
        error = content.no_vision(where)
        effective = (
            str(error) if where.startswith("input") else f"This model takes text only, and what '{where}' continues has images."
        )
        raise InvalidRequest(effective, param=where, code=error.code)
