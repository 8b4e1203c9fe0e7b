"""From an order and its plan to a run that is about to begin."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from uuid import UUID

from django.conf import settings

from responses_app.models import Response, Status
from responses_app.protocol.writer import Writer
from responses_app.runs.compact.compaction import make_compaction_hook
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute import response_object
from responses_app.runs.execute.generation import Generation
from responses_app.runs.execute.run import Run
from responses_app.runs.ids import new_id
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare import encrypted_content
from responses_app.runs.prepare.planner import PreparedRequest
from responses_app.store.content.history import ConversationContext
from responses_app.store.log.records import RequestRecord, ResponseLog
from responses_app.store.log.writer import LogWriter


def create_run(
    order: CreateRequest, served: ServedModel, plan: PreparedRequest, recorder: LogWriter, worker: UUID | None
) -> Run:
    """The run. It is parked if it is no worker's: then it is opened, and begun by whoever has room."""
    assert served.dialect is not None  # noqa: S101 - started
    now, request = time.time(), plan.request
    return Run(
        Writer(
            response_object.initial_response(order, served, request.id, int(now)), new_id, encrypted_content.encryptor(order)
        ),
        Generation(served.engine, request, served.dialect.token_text, wait=settings.RESPONSES_ENGINE_WAIT),
        plan.listener,
        recorder=recorder,
        log=_log(order, served, plan, worker, now),
        prompt=request.length or len(request.prompt),
        wait_for_commit=settings.RESPONSES_DURABILITY != "terminal",
        queued=worker is None,
        compaction_hook=make_compaction_hook(order, served, plan),
        emit_error_event=order.emit_error_event,
        generate=order.generate,
    )


def _log(
    order: CreateRequest, served: ServedModel, plan: PreparedRequest, worker: UUID | None, now: float
) -> ResponseLog | None:
    """What is kept of it; None if nothing is."""
    if not (order.store or order.background or plan.before.conversation is not None):
        return None
    asked = RequestRecord(order.dump(), plan.request.prompt, served.name, order.priority)
    row = _row(order, plan.request.id, now, plan.before)
    return ResponseLog(row, [*plan.before.carried, *plan.own], plan.fetched, asked, worker)


def _row(order: CreateRequest, uid: str, now: float, before: ConversationContext) -> Response:
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
