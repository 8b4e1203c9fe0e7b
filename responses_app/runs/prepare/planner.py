"""Planner: the stages from a request to an engine request and a parser, for a first start, a take-over and a further round."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from responses_app.dialects.base import OutputParser
from responses_app.dialects.text.budget import Budget
from responses_app.engine_interface import GenerateRequest
from responses_app.errors import InvalidRequest
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.convert import work_size
from responses_app.runs.prepare.grammars import check_grammars
from responses_app.runs.prepare.items.conversation import find_previous
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
    prompt fits. `reservation` is the primary key of the `OpenReservation`, if there is one.
    """

    context: PromptContext
    request: GenerateRequest
    parser: OutputParser
    reservation: int | None = None


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
    return await plan_prompt(await load(context, before, input_context))


async def plan_prompt(context: PromptContext) -> PreparedRequest:
    """Prepare a prompt whose items are loaded, also for a further round and for a summary. Raises ApiError."""
    context = await resolve(context)
    with context.map_errors(context.items):
        budget = Budget(context.served.engine.max_model_len - 1)
    size = work_size(context)
    rendering = await long_work.run_sized(context.create_request.project, size, partial(render, context, budget), budget.stop)
    request, converted = await limit(context, rendering)
    return PreparedRequest(context, request, await compose(context, converted, size))
