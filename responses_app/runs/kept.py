"""What a connection remembers of a response that was made over it: all that a continuation starts from, stored or not."""

from __future__ import annotations

from dataclasses import dataclass

from responses_app.dialects.memo import Known, Memo
from responses_app.runs.plan import Plan
from responses_app.runs.run import Run
from responses_app.store.history import Context


@dataclass(frozen=True, slots=True)
class Kept:
    """One response that has ended here.

    `asked` are the bytes of all requests and last events so far; `size` is roughly what remembering it takes.
    """

    uid: str
    context: Context
    known: Known
    asked: int
    size: int


def kept(run: Run, plan: Plan, memo: Memo, asked: int) -> Kept:
    """The run, which has ended in this process, and what it was told. `asked` are the bytes of what was asked and said, up to here."""
    before, response = plan.before, run.response
    context = Context(
        keys=[*before.keys, *run.keys],
        items=[*before.items, *plan.own, *response["output"]],
        thread=before.thread or run.uid,
        status=response["status"],
        images=plan.images,
    )
    return Kept(run.uid, context, memo.used, asked, asked + memo.size + sum(map(len, plan.images.values())))
