"""Context cache of a WebSocket connection: all data that a continuation of the last response needs, stored or not."""

from __future__ import annotations

from dataclasses import dataclass

from responses_app.dialects.text.token_cache import CachedTokens, TokenCache
from responses_app.runs.execute.run import Run
from responses_app.runs.prepare.planner import PreparedRequest
from responses_app.store.content import tool_outputs
from responses_app.store.content.history import ConversationContext


@dataclass(frozen=True, slots=True)
class CachedContext:
    """Context of a response that has ended in this process.

    `request_bytes` is the size of all requests and last events so far in bytes; `size` is about the memory of the cached context.
    """

    uid: str
    context: ConversationContext
    known: CachedTokens
    request_bytes: int
    size: int


def cache_context(run: Run, plan: PreparedRequest, memo: TokenCache, request_bytes: int) -> CachedContext:
    """Return the context of a run that has ended in this process. `request_bytes` is the size of requests and answers so far in bytes."""
    context, response = plan.context, run.writer.response
    before = context.before
    outputs = tool_outputs.attached([*context.items, *run.writer.output.prompt_items])
    continued = ConversationContext(
        keys=[*before.keys, *run.publisher.item_keys],
        items=[*before.items, *context.input_items, *response["output"]],
        thread=before.thread or run.uid,
        status=response["status"],
        images=context.images,
        tool_outputs=outputs,
    )
    size = request_bytes + memo.size + sum(map(len, context.images.values())) + tool_outputs.size(outputs)
    return CachedContext(run.uid, continued, memo.used, request_bytes, size)
