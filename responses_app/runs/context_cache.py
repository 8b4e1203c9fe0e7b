"""What a connection remembers of a response that was made over it: all that a continuation starts from, stored or not."""

from __future__ import annotations

from dataclasses import dataclass

from responses_app.dialects.text.token_cache import Known, TokenCache
from responses_app.runs.execute.run import Run
from responses_app.runs.prepare.planner import PreparedRequest
from responses_app.store.content.history import ConversationContext


@dataclass(frozen=True, slots=True)
class CachedContext:
    """One response that has ended here.

    `asked` are the bytes of all requests and last events so far; `size` is roughly what remembering it takes.
    """

    uid: str
    context: ConversationContext
    known: Known
    asked: int
    size: int


def kept(run: Run, plan: PreparedRequest, memo: TokenCache, asked: int) -> CachedContext:
    """The run, which has ended in this process, and what it was told. `asked` are the bytes of what was asked and said, up to here."""
    before, response = plan.before, run.response
    context = ConversationContext(
        keys=[*before.keys, *run.keys],
        items=[*before.items, *plan.own, *response["output"]],
        thread=before.thread or run.uid,
        status=response["status"],
        images=plan.images,
    )
    return CachedContext(run.uid, context, memo.used, asked, asked + memo.size + sum(map(len, plan.images.values())))
