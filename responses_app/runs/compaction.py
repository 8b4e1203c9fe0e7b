"""Compaction: a summary by the model replaces the answers and tool results of a long conversation."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from responses_app.engine_interface import EngineError, EngineLacksModel, EngineOverloaded, RequestRejected
from responses_app.errors import ApiError, InternalError, InvalidRequest, RateLimited
from responses_app.protocol.deltas import Compaction
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.endings import INVALID_PROMPT, OVERLOADED_MESSAGE, model_removed
from responses_app.runs.execute.generation import Generation
from responses_app.runs.execute.output import DeltaCollector
from responses_app.runs.execute.response_object import usage
from responses_app.runs.execute.rounds import Round
from responses_app.runs.execute.run import CompactionHook
from responses_app.runs.execute.usage import UsageCounter
from responses_app.runs.ids import new_id
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare.encrypted_content import seal_summary
from responses_app.runs.prepare.items.summary import NO_SUMMARY, QUESTION, summary_request, summary_text
from responses_app.runs.prepare.planner import PreparedRequest, Reserve, plan, plan_prompt
from responses_app.runs.prepare.prompt_context import PromptContext

logger = logging.getLogger("responses.compaction")

Json: TypeAlias = Mapping[str, Any]
# Default threshold as a share of the context window: leaves space for the summary and another turn.
FULL = 0.75


async def compact(create_request: CreateRequest, served: ServedModel, reserve: Reserve | None = None) -> dict[str, Any]:
    """Return the `response.compaction` object for the context of `create_request`. Nothing is stored. Raises ApiError."""
    uid, create_request = new_id("resp_"), replace(create_request, compacts=False)
    context = (await plan(PromptContext(uid, create_request, served))).context
    summary, figures = await _summarize(uid, context, create_request, context.items, reserve)
    return {
        "id": uid,
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [
            *(item for item in context.items if item["type"] == "message" and item["role"] == "user"),
            {"id": new_id("cmp_"), "type": "compaction", "encrypted_content": seal_summary(create_request.project, summary)},
        ],
        "usage": figures,
        **({"image": create_request.echo["image"]} if create_request.echo.get("image") else {}),
    }


def make_compaction_hook(create_request: CreateRequest, plan: PreparedRequest) -> CompactionHook | None:
    """Return the function that compacts the whole context at the end of a response; None unless the request demands that."""
    if create_request.compact_threshold is None or create_request.compacts:
        return None

    def make(output: Sequence[Json], spent: int) -> Awaitable[tuple[Compaction, int] | None]:
        return compact_if_full(create_request, plan.context, [*plan.context.items, *output], spent)

    return make


async def compact_if_full(
    create_request: CreateRequest, context: PromptContext, items: Sequence[Json], spent: int
) -> tuple[Compaction, int] | None:
    """Compact `items` as `context_management` demands. Return the compaction and the number of tokens used.

    `context` is that of the response, `spent` is the length of the prompt and the output in tokens. Return None below the
    threshold, and if the model writes no summary: the response is complete without a compaction.
    """
    if create_request.compact_threshold is None or spent < (
        create_request.compact_threshold or int(context.served.engine.max_model_len * FULL)
    ):
        return None
    try:
        summary, figures = await _summarize(new_id("resp_"), context, create_request, items)
    except ApiError as error:
        logger.warning("compaction failed: %s", error.message)
        return None
    return Compaction(seal_summary(create_request.project, summary)), figures["output_tokens"]


async def _summarize(
    uid: str, context: PromptContext, create_request: CreateRequest, items: Sequence[Json], reserve: Reserve | None = None
) -> tuple[str, dict[str, Any]]:
    """Generate a summary of `items`, at a second attempt with the lowest effort. Return the summary and the usage. Raises ApiError."""
    summary, spent = await _attempt(uid, context, create_request, items, reserve)
    efforts, effort = context.served.efforts, (create_request.reasoning or {}).get("effort")
    if not summary and efforts and effort != efforts[0]:
        # Most often the model has reasoned up to the limit.
        least = replace(create_request, reasoning={**(create_request.reasoning or {}), "effort": efforts[0]})
        summary, more = await _attempt(f"{uid}-again", context, least, items, reserve)
        spent = spent.plus(more)
    if not summary:
        raise InternalError(NO_SUMMARY)
    return summary, usage(spent.prompt, spent.cached, spent.output, spent.reasoning)


async def _attempt(
    uid: str, context: PromptContext, create_request: CreateRequest, items: Sequence[Json], reserve: Reserve | None
) -> tuple[str, UsageCounter]:
    """Generate a summary of `items` in a single round. Return the summary, which may be empty, and the usage. Raises ApiError."""
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
    prepared = await plan_prompt(summary)
    request = prepared.request
    if reserve is not None:
        await reserve(replace(prepared, context=context))
    generation, output = Generation(context.served.engine, request, context.dialect.token_text), DeltaCollector()
    round = Round(generation, prepared.parser, request.length or len(request.prompt))
    try:
        await round.generate(output)
    except RequestRejected as error:
        raise InvalidRequest(str(error), code=INVALID_PROMPT) from error
    except EngineOverloaded as error:
        raise RateLimited(OVERLOADED_MESSAGE) from error
    except EngineLacksModel as error:
        raise model_removed(context.served.name) from error
    except EngineError as error:
        raise InternalError(f"The engine failed: {error}") from error
    return summary_text([*output.deltas, *round.finish_parser()]), round.usage
