"""What a connection remembers of a response that was made over it: all that a continuation starts from, stored or not."""

from __future__ import annotations

from dataclasses import dataclass

from responses_app.runs.plan import Plan
from responses_app.runs.run import Run
from responses_app.store.history import Context


@dataclass(frozen=True, slots=True)
class Kept:
    """One response that has ended here. `size` is roughly what remembering it takes, in bytes."""

    uid: str
    context: Context
    size: int


def kept(run: Run, plan: Plan, size: int) -> Kept:
    """The run, which has ended in this process, and what it was told. `size` is that of its request and its last event."""
    before, response = plan.before, run.response
    context = Context(
        keys=[*before.keys, *run.keys],
        items=[*before.items, *plan.own, *response["output"]],
        thread=before.thread or run.uid,
        status=response["status"],
        images=plan.images,
    )
    return Kept(run.uid, context, size + sum(map(len, plan.images.values())))
