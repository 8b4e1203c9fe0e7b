"""From an order and its plan to a run that is about to begin."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from uuid import UUID

from django.conf import settings

from responses_app.grammar.writer import Writer
from responses_app.models import Response, Status
from responses_app.runs import sealed, shape
from responses_app.runs.compaction import shortening
from responses_app.runs.generation import Generation
from responses_app.runs.ids import mint
from responses_app.runs.order import Order
from responses_app.runs.plan import Plan
from responses_app.runs.run import Run
from responses_app.runs.served import Served
from responses_app.store.history import Context
from responses_app.store.recorder import Recorder
from responses_app.store.records import Asked, Log


def born(order: Order, served: Served, plan: Plan, recorder: Recorder, worker: UUID | None) -> Run:
    """The run. It is parked if it is no worker's: then it is opened, and begun by whoever has room."""
    assert served.dialect is not None  # noqa: S101 - started
    now, request = time.time(), plan.request
    return Run(
        Writer(shape.birth(order, served, request.id, int(now)), mint, sealed.sealing(order)),
        Generation(served.engine, request, served.dialect.spell, wait=settings.RESPONSES_ENGINE_WAIT),
        plan.listener,
        recorder=recorder,
        log=_log(order, served, plan, worker, now),
        prompt=request.length or len(request.prompt),
        patient=settings.RESPONSES_DURABILITY != "terminal",
        parked=worker is None,
        shorten=shortening(order, served, plan),
        aloud=order.aloud,
        speaks=order.generate,
    )


def _log(order: Order, served: Served, plan: Plan, worker: UUID | None, now: float) -> Log | None:
    """What is kept of it; None if nothing is."""
    if not (order.store or order.background or plan.before.conversation is not None):
        return None
    asked = Asked(order.dump(), plan.request.prompt, served.name, order.priority)
    row = _row(order, plan.request.id, now, plan.before)
    return Log(row, [*plan.before.carried, *plan.own], plan.fetched, asked, worker)


def _row(order: Order, uid: str, now: float, before: Context) -> Response:
    return Response(
        uid=uid,
        request_id=order.request_id,
        project=order.project,
        key_id=order.key,
        model=order.model,
        status=Status.QUEUED if order.background else Status.IN_PROGRESS,
        background=order.background,
        streamed=order.stream,
        stored=order.store,
        thread=before.thread or uid,
        previous_uid=order.previous_response_id,
        conversation_id=before.conversation,
        history=list(before.keys),
        # jsonb cannot hold NUL; the log keeps the exact value.
        metadata={key.replace("\0", ""): value.replace("\0", "") for key, value in order.metadata.items()},
        created_at=datetime.fromtimestamp(now, UTC),
    )
