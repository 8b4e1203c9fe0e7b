"""Long conversations in short: a model's own summary takes the place of what it and its tools have said (responses-api.md §3.6)."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeAlias

from responses_app.engine_interface import EngineError, RequestRejected
from responses_app.errors import ApiError, InternalError, InvalidRequest
from responses_app.protocol.deltas import Compaction, Delta
from responses_app.runs.compact.prompt import QUESTION, summary_request, summary_text
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.endings import INVALID_PROMPT
from responses_app.runs.execute.response_object import usage
from responses_app.runs.execute.run import CompactionHook
from responses_app.runs.execute.usage import UsageCounter
from responses_app.runs.ids import new_id
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare.encrypted_content import seal_summary
from responses_app.runs.prepare.planner import PreparedRequest, build_engine_request, plan
from responses_app.store.log.records import ImageBytes

logger = logging.getLogger("responses.compaction")

Json: TypeAlias = Mapping[str, Any]
# Where a request names no threshold: the share of the context window that leaves room for the summary and another turn.
FULL = 0.75


async def compact(order: CreateRequest, served: ServedModel) -> dict[str, Any]:
    """The `response.compaction` object for the order's context. Nothing is kept. Raises ApiError."""
    known = await plan(replace(order, compacts=False), served)
    summary, figures = await _summarize(order, served, known.items, known.images)
    return {
        "id": known.request.id,
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [
            *(item for item in known.items if item["type"] == "message" and item["role"] == "user"),
            {"id": new_id("cmp_"), "type": "compaction", "encrypted_content": seal_summary(order.project, summary)},
        ],
        "usage": figures,
        **({"image": order.echo["image"]} if order.echo.get("image") else {}),
    }


def make_compaction_hook(order: CreateRequest, served: ServedModel, plan: PreparedRequest) -> CompactionHook | None:
    """What makes the compaction of everything that was told and said, if the order asks for one at the end."""
    if order.compact_threshold is None or order.compacts:
        return None

    def make(output: Sequence[Json], spent: int) -> Awaitable[tuple[Compaction, int] | None]:
        return compact_if_full(order, served, [*plan.items, *output], plan.images, spent)

    return make


async def compact_if_full(
    order: CreateRequest, served: ServedModel, items: Sequence[Json], images: ImageBytes, spent: int
) -> tuple[Compaction, int] | None:
    """What `context_management` asks for at the end of a response: a compaction of all items, and the tokens that it took.

    `spent` is the length of the context. None if that is below the threshold, or if there is no summary to be had: the
    response is complete without it.
    """
    if order.compact_threshold is None or spent < (order.compact_threshold or int(served.engine.max_model_len * FULL)):
        return None
    try:
        summary, figures = await _summarize(order, served, items, images)
    except ApiError as error:
        logger.warning("no compaction: %s", error.message)
        return None
    return Compaction(seal_summary(order.project, summary)), figures["output_tokens"]


async def _summarize(
    order: CreateRequest, served: ServedModel, items: Sequence[Json], images: ImageBytes
) -> tuple[str, dict[str, Any]]:
    """A summary, and the usage that it took. Raises ApiError."""
    request, listener = await build_engine_request(summary_request(order), served, [*items, QUESTION], images)
    tally, said = UsageCounter(prompt=request.length or len(request.prompt)), list[Delta]()
    try:
        async with aclosing(served.engine.generate(request)) as chunks:
            async for chunk in chunks:
                tally.count(chunk)
                said += listener.feed(chunk)
                if listener.done or chunk.finish is not None:
                    break
    except RequestRejected as error:
        raise InvalidRequest(str(error), code=INVALID_PROMPT) from error
    except EngineError as error:
        raise InternalError(f"The engine failed: {error}") from error
    said += listener.finish()
    summary = summary_text(said)
    if not summary:
        raise InternalError("The model has not written a summary.")
    return summary, usage(tally.prompt, tally.cached, tally.output, listener.reasoning_tokens)
