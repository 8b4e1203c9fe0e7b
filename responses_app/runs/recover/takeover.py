"""A response that nobody runs any more, or nobody yet, made a run of this process."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings

from responses_app.engine_interface import Chunk, GenerateRequest, Sampling
from responses_app.errors import ApiError, ServiceUnavailable
from responses_app.models import Lease, Response
from responses_app.protocol.deltas import Delta
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.writer import Writer
from responses_app.runs.compact.compaction import make_compaction_hook
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.generation import Generation
from responses_app.runs.execute.run import ResumeState, Run
from responses_app.runs.ids import new_id
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare import encrypted_content
from responses_app.runs.prepare.planner import PreparedRequest, replan
from responses_app.runs.recover.log_replay import ReplayedRun, ReplayMismatch, StoredLog
from responses_app.runs.recover.log_replay import replay as replay_
from responses_app.store.cluster import leases
from responses_app.store.content import history
from responses_app.store.content.history import ConversationContext
from responses_app.store.log import reader
from responses_app.store.log.group_commit import unpacked
from responses_app.store.log.records import RequestRecord, ResponseLog
from responses_app.store.log.writer import LogWriter

logger = logging.getLogger("responses.takeover")

# A response that changes hands so often without a new event takes its process down with it, or cannot be made at all.
HOPELESS = 8
LOST = "The server that generated this response has gone, and it cannot be continued exactly: "


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What the store has of a response that is to go on."""

    row: Response
    lease: Lease
    order: CreateRequest
    before: ConversationContext
    own: ConversationContext
    prompt: list[int]
    log: StoredLog

    @property
    def last(self) -> int:
        """The number of its last event."""
        return self.log[-1][0].number

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its events."""
        return [orjson.loads(frame.data) for frame, _ in self.log]


async def take_over(pk: int, worker: UUID, models: Mapping[str, ServedModel], recorder: LogWriter) -> Run | None:
    """The run of a response whose lease this worker holds. None if it has ended. Raises Unavailable if it cannot be made now.

    One whose model is not among `models`, of which there is one at least, can only be ended.
    """
    found = await _found(pk)
    if found is None:
        return None
    known = models.get(found.lease.model)
    plan, broken = await _planned(found, known)
    served = known or next(iter(models.values()))
    stalled = 0 if found.lease.waiting else await sync_to_async(leases.record_takeover)(pk, found.last)
    if stalled is None:
        return None
    if stalled >= HOPELESS:
        broken = f"{LOST}it was tried {stalled} times."
    state, broken = _state(found, plan, broken)
    logger.info("%s: taken over at event %d, %d tokens", found.row.uid, found.last, len(state.heard))
    return _run(found, plan, served, state, broken, worker, recorder)


async def _found(pk: int) -> StoredRun | None:
    loaded = await sync_to_async(leases.load)(pk)
    if loaded is None:
        return None
    row, lease, text, prompt = loaded
    before, own = await history.of_response(row)
    return StoredRun(
        row, lease, CreateRequest.load(text, own.items), before, own, unpacked(prompt), await reader.frames_with_tokens(pk)
    )


async def _planned(found: StoredRun, served: ServedModel | None) -> tuple[PreparedRequest, str | None]:
    """The plan made again, with the prompt that was kept; or, and why, one that is of no use but to end the response."""
    row = found.row
    if served is None:
        return _no_plan(found), f"{LOST}nobody serves the model '{found.lease.model}' any more."
    try:
        plan = await replan(found.order, served, found.before, found.own, row.created_at.date())
    except ServiceUnavailable:
        raise
    except ApiError as error:
        logger.error("%s: cannot be asked again: %s", row.uid, error.message)
        return _no_plan(found), f"{LOST}{error.message}"
    return replace(plan, request=replace(plan.request, id=row.uid, prompt=found.prompt)), None


def _no_plan(found: StoredRun) -> PreparedRequest:
    nothing = GenerateRequest(found.row.uid, found.prompt, Sampling(max_tokens=1))
    return PreparedRequest(found.before, (), (), {}, {}, nothing, NullParser())


def _state(found: StoredRun, plan: PreparedRequest, broken: str | None) -> tuple[ReplayedRun, str | None]:
    """Where the log has come to; and why it cannot go on from there, if so."""
    try:
        if broken is None:
            return replay_(found.log, plan.listener, encrypted_content.encryptor(found.order)), None
    except (ReplayMismatch, ProtocolError) as error:
        logger.error("%s: not as it was: %s", found.row.uid, error)
        broken = f"{LOST}{error}."
    return ReplayedRun(Writer.for_ending(found.events, new_id), [], closed=False), broken


def _run(
    found: StoredRun,
    plan: PreparedRequest,
    served: ServedModel,
    state: ReplayedRun,
    broken: str | None,
    worker: UUID,
    recorder: LogWriter,
) -> Run:
    assert served.dialect is not None  # noqa: S101 - started
    lease = found.lease
    # One that has only waited was never asked for.
    take = lease.epoch - lease.waiting
    generation = Generation(
        served.engine,
        plan.request,
        served.dialect.token_text,
        heard=state.heard,
        wait=settings.RESPONSES_ENGINE_WAIT,
        owner_epoch=take,
    )
    asked = RequestRecord("", (), lease.model, lease.priority)
    return Run(
        state.writer,
        generation,
        plan.listener,
        recorder=recorder,
        log=ResponseLog(found.row, (), asked=asked, worker=worker, epoch=lease.epoch),
        prompt=plan.request.length or len(plan.request.prompt),
        wait_for_commit=settings.RESPONSES_DURABILITY != "terminal",
        compaction_hook=make_compaction_hook(found.order, served, plan),
        emit_error_event=found.order.emit_error_event,
        generate=found.order.generate,
        resume=ResumeState([frame for frame, _ in found.log], closed=state.closed, cancelled=lease.cancelled, broken=broken),
    )


class NullParser:
    """The listener of a run that only ends."""

    reasoning_tokens = 0
    done = True

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Nothing."""
        del chunk
        return []

    def finish(self) -> list[Delta]:
        """Nothing."""
        return []
