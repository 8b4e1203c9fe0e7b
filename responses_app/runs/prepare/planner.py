"""Planner: the stages from a request to an engine request and a parser, for a first start, a take-over and a further round."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from responses_app.dialects.base import OutputParser
from responses_app.dialects.text.budget import Budget
from responses_app.engine_interface import GenerateRequest
from responses_app.errors import InvalidRequest
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.convert import work_size
from responses_app.runs.prepare.grammars import check_grammars
from responses_app.runs.prepare.items.conversation import find_previous
from responses_app.runs.prepare.items.summary import QUESTION, summary_request
from responses_app.runs.prepare.length import skipping
from responses_app.runs.prepare.length.skipping import NeedsAllItems
from responses_app.runs.prepare.load import check_resources, load
from responses_app.runs.prepare.output_chain import compose
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.runs.prepare.render import limit, render
from responses_app.runs.prepare.resolve import resolve
from responses_app.store.content.history import ConversationContext


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """Prepared request: everything that a run needs to begin. `parser` parses the answer.

    `context` is the context of the first round: with `openings` that round generates nothing, and `request` only shows that the
    prompt fits.
    """

    context: PromptContext
    request: GenerateRequest
    parser: OutputParser


# Reserves what a prepared request may use of limits, and returns the request with the reservation. Raises RateLimited.
Reserve: TypeAlias = Callable[[PreparedRequest], Awaitable[PreparedRequest]]


async def plan(context: PromptContext, before: ConversationContext | None = None) -> PreparedRequest:
    """Prepare a response; nothing is stored. `before` is the context that the request continues; None has it looked up. Raises ApiError."""
    request = context.create_request
    await check_grammars(request.project, request.tools, request.input)
    await check_resources(request)
    if before is None:
        before = await find_previous(request, partial(skipping.find, request.model) if skipping.is_possible(context) else None)
        if before.skipped is not None:
            # An error may be due to the items that were not read.
            with suppress(NeedsAllItems, InvalidRequest):
                skipping.check_compactions(before.items)
                return await plan_from(context, before)
            before = await find_previous(request)
    return await plan_from(context, before)


async def plan_from(
    context: PromptContext, before: ConversationContext, input_context: ConversationContext | None = None
) -> PreparedRequest:
    """Prepare a response that continues `before`; a stored response again, from the stored `input_context`. Raises ApiError."""
    context = await load(context, before, input_context)
    context = await resolve(context)
    return PreparedRequest(context, *await build(context))


async def plan_round(context: PromptContext) -> tuple[GenerateRequest, OutputParser]:
    """Prepare a further round of a response, from the context of this round with the output so far. Raises ApiError."""
    return await build(await resolve(context))


async def plan_summary(
    uid: str, context: PromptContext, create_request: CreateRequest, items: Sequence[Mapping[str, Any]]
) -> tuple[GenerateRequest, OutputParser]:
    """Prepare a summary of `items`, of a response with the context `context`, as the request `create_request` has it. Raises ApiError."""
    summary = PromptContext(
        uid,
        summary_request(create_request),
        context.served,
        items=[*items, QUESTION],
        references=context.references,
        session=context.session,
        images=context.images,
        decoded=context.decoded,
    )
    return await build(await resolve(summary))


async def build(context: PromptContext) -> tuple[GenerateRequest, OutputParser]:
    """Build the request of the engine and the parser of the answer for a resolved context. Raises ApiError."""
    with context.map_errors(context.items):
        budget = Budget(context.served.engine.max_model_len - 1)
    size = work_size(context)
    rendering = await long_work.run_sized(context.create_request.project, size, partial(render, context, budget), budget.stop)
    request, converted = await limit(context, rendering)
    return request, await compose(context, converted, size)
