"""Take-over: a response without a running owner becomes a run of this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from asgiref.sync import sync_to_async

from responses_app.engine_interface import Chunk, GenerateRequest, Sampling
from responses_app.errors import ApiError, ServiceUnavailable
from responses_app.models import Lease, Response
from responses_app.observability import events
from responses_app.protocol.deltas import Delta
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.writer import Writer
from responses_app.runs.cache_diagnostics.diagnostics import make_diagnostics_hook
from responses_app.runs.compaction import make_compaction_hook
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.broadcast import Broadcast
from responses_app.runs.execute.output import ResponseOutput
from responses_app.runs.execute.publisher import DurablePublisher
from responses_app.runs.execute.round_planner import RoundPlanner
from responses_app.runs.execute.rounds import Rounds
from responses_app.runs.execute.run import ResumeState, Run, RunOptions
from responses_app.runs.ids import new_id
from responses_app.runs.models import ServedModel
from responses_app.runs.new_run import RunOwner
from responses_app.runs.prepare import encrypted_content
from responses_app.runs.prepare.planner import PreparedRequest, plan_from
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.runs.recover.log_replay import ReplayedRun, ReplayMismatch, StoredLog, replay
from responses_app.runs.server_tools.executors import ToolFactory
from responses_app.runs.server_tools.request_secrets import decrypt_secrets
from responses_app.store.cluster import leases
from responses_app.store.content import history
from responses_app.store.content.history import ConversationContext
from responses_app.store.log import reader
from responses_app.store.log.records import RequestRecord, ResponseLog
from responses_app.store.log.token_log import decode_tokens
from responses_app.tools.base import ToolExecutor

logger = logging.getLogger("responses.takeover")

# A response that changes its owner so often without a new event probably crashes its process, or cannot be continued.
MAX_STALLED_TAKEOVERS = 8
LOST = "The server that generated this response has gone, and it cannot be continued exactly: "


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Everything that the store has of a response to be continued."""

    row: Response
    lease: Lease
    create_request: CreateRequest
    before: ConversationContext
    input_context: ConversationContext
    prompt: list[int]
    log: StoredLog
    running_s: float

    @property
    def last(self) -> int:
        """Number of the last event."""
        return self.log[-1][0].number

    @property
    def events(self) -> list[dict[str, Any]]:
        """All events so far."""
        return [orjson.loads(frame.data) for frame, _ in self.log]

    def response_log(self, owner: RunOwner) -> ResponseLog:
        """Return the log to which `owner` appends."""
        lease = self.lease
        record = RequestRecord("", (), lease.model, lease.priority)
        charges = self.create_request.charges
        return ResponseLog(self.row, (), request=record, worker=owner.worker, epoch=lease.epoch, charges=charges)


async def take_over(pk: int, owner: RunOwner, models: Mapping[str, ServedModel], tools_for: ToolFactory) -> Run | None:
    """Return the run of a response with a lease of `owner`; None if the response has ended. Raises ServiceUnavailable for a later try.

    A response whose model is not among `models` can only be ended; one model must be there.
    """
    stored_run = await _load_run(pk)
    if stored_run is None:
        return None
    known, tools = models.get(stored_run.lease.model), tools_for(stored_run.create_request, stored_run.row.uid)
    served = known or next(iter(models.values()))
    plan, broken = await _planned(stored_run, served, tools, is_served=known is not None)
    stalled = 0 if stored_run.lease.waiting else await sync_to_async(leases.record_takeover)(pk, stored_run.last)
    if stalled is None:
        return None
    if stalled >= MAX_STALLED_TAKEOVERS:
        broken = f"{LOST}it was tried {stalled} times."
    # A response that only waited had no request to the engine yet.
    epoch = stored_run.lease.epoch - stored_run.lease.waiting
    planner = RoundPlanner(plan, epoch)
    state, broken = await _state(stored_run, planner, broken)
    logger.info("%s: taken over at event %d, %d tokens", stored_run.row.uid, stored_run.last, len(state.tokens))
    if stored_run.lease.waiting:
        events.started(time.time() - stored_run.row.created_at.timestamp())
    else:
        events.taken_over()
    resume = ResumeState(cancelled=stored_run.lease.cancelled, broken=broken, running_s=stored_run.running_s)
    publisher = DurablePublisher(
        Broadcast([frame for frame, _ in stored_run.log]), owner.recorder, stored_run.response_log(owner)
    )
    return _run(stored_run.create_request, planner, state, resume, publisher)


async def _load_run(pk: int) -> StoredRun | None:
    loaded = await sync_to_async(leases.load)(pk)
    if loaded is None:
        return None
    row, secrets = loaded.row, decrypt_secrets(loaded.row.uid, loaded.lease.secrets)
    before, input_context = await history.load_for_takeover(row)
    create_request = CreateRequest.load(loaded.create_request, input_context.items, secrets)
    create_request = replace(create_request, request_id=row.request_id)
    prompt, log = decode_tokens(loaded.prompt_tokens), await reader.frames_with_tokens(pk)
    if not log:
        # This process was slow: another one has ended the response since, and its log is archived or deleted.
        return None
    return StoredRun(row, loaded.lease, create_request, before, input_context, prompt, log, loaded.running_s)


async def _planned(
    stored_run: StoredRun, served: ServedModel, tools: ToolExecutor | None, *, is_served: bool
) -> tuple[PreparedRequest, str | None]:
    """Return the plan made again, with the stored prompt; or a plan that can only end the response, and the reason."""
    row = stored_run.row
    context = PromptContext(row.uid, stored_run.create_request, served, tools, today=row.created_at.date())
    if not is_served:
        return _plan_for_ending(stored_run, context), f"{LOST}no server serves the model '{stored_run.lease.model}' any more."
    try:
        plan = await plan_from(context, stored_run.before, stored_run.input_context)
    except ServiceUnavailable:
        raise
    except ApiError as error:
        logger.error("%s: cannot be planned again: %s", row.uid, error.message)
        return _plan_for_ending(stored_run, context), f"{LOST}{error.message}"
    return replace(plan, request=replace(plan.request, prompt=stored_run.prompt)), None


def _plan_for_ending(stored_run: StoredRun, context: PromptContext) -> PreparedRequest:
    nothing = GenerateRequest(stored_run.row.uid, stored_run.prompt, Sampling(max_tokens=1))
    return PreparedRequest(replace(context, before=stored_run.before), nothing, NullParser())


async def _state(stored_run: StoredRun, planner: RoundPlanner, broken: str | None) -> tuple[ReplayedRun, str | None]:
    """Return the state behind the last event, and the reason if the run cannot continue from there. Raises ServiceUnavailable."""
    try:
        if broken is None:
            encrypt = encrypted_content.encryptor(stored_run.create_request)
            return await replay(stored_run.log, *planner.first(), encrypt, planner.plan), None
    except ServiceUnavailable:
        raise
    except (ReplayMismatch, ProtocolError, ApiError) as error:
        logger.error("%s: replay differs: %s", stored_run.row.uid, error)
        broken = f"{LOST}{error}."
    return ReplayedRun(Writer.restore(stored_run.events, new_id), planner.prepared.request, planner.prepared.parser), broken


def _run(
    create_request: CreateRequest, planner: RoundPlanner, state: ReplayedRun, resume: ResumeState, publisher: DurablePublisher
) -> Run:
    output = ResponseOutput(state.writer, publisher)
    first = planner.create(state.request, state.parser, state.tokens, state.end, number=state.progress.number)
    rounds = Rounds(first, output, planner.loop(), state.progress)
    hooks = make_compaction_hook(create_request, planner.prepared), make_diagnostics_hook(create_request, planner.prepared)
    return Run(output, rounds, RunOptions.from_request(create_request, *hooks), resume=resume)


class NullParser:
    """Parser of a run that only ends: no deltas."""

    reasoning_tokens, unread_tokens, stop_sequence = 0, 0, None
    done = True

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Return no deltas."""
        del chunk
        return []

    def finish(self) -> list[Delta]:
        """Return no deltas."""
        return []
