"""New run: from a request to a run with its writer, its log and its rounds."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from uuid import UUID

from responses_app.dialects.text.token_cache import TokenCache
from responses_app.errors import InvalidRequest, NotFound, RateLimited, ServiceUnavailable
from responses_app.models import Response, Status
from responses_app.protocol.writer import Writer
from responses_app.runs.cache_diagnostics.diagnostics import make_diagnostics_hook
from responses_app.runs.compaction import make_compaction_hook
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute import response_object
from responses_app.runs.execute.broadcast import Broadcast
from responses_app.runs.execute.endings import OVERLOADED_MESSAGE, model_removed
from responses_app.runs.execute.output import ResponseOutput
from responses_app.runs.execute.publisher import DurablePublisher
from responses_app.runs.execute.round_planner import RoundPlanner
from responses_app.runs.execute.rounds import Rounds
from responses_app.runs.execute.run import Run, RunOptions
from responses_app.runs.ids import new_id
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare import encrypted_content
from responses_app.runs.prepare.planner import PreparedRequest, Reserve, plan
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.runs.prepare.resolve import storable
from responses_app.runs.server_tools import approvals
from responses_app.runs.server_tools.executors import ToolFactory
from responses_app.runs.server_tools.request_secrets import encrypt_secrets
from responses_app.store.content.history import ConversationContext
from responses_app.store.log.records import RequestRecord, ResponseLog
from responses_app.store.log.writer import LogWriter
from responses_app.store.response_list import storable_metadata


@dataclass(frozen=True, slots=True)
class RunOwner:
    """Process that executes a run: its log writer and its worker id. Without `worker` the run waits in the queue."""

    recorder: LogWriter
    worker: UUID | None


@dataclass(frozen=True, slots=True)
class KnownContext:
    """Context that a request continues, as far as the caller knows: the items, and a cache of the tokens of the prompt.

    `reserve` reserves what the prepared request may use of the limits of its key, before anything is stored. `slot` is the concurrency
    slot of the request, which ends when the row of the response begins.
    """

    before: ConversationContext | None = None
    token_cache: TokenCache | None = None
    reserve: Reserve | None = None
    slot: int | None = None


NOTHING_KNOWN = KnownContext()


async def prepare_run(
    create_request: CreateRequest, served: ServedModel, owner: RunOwner, tools_for: ToolFactory, known: KnownContext
) -> tuple[Run, PreparedRequest]:
    """Plan the request and create the run, without a start. Raises ApiError; then nothing was stored."""
    uid = new_id("resp_")
    tools = tools_for(create_request, uid)
    context = PromptContext(uid, create_request, served, tools, token_cache=known.token_cache)
    prepared = await plan(context, known.before)
    if owner.worker is not None:
        if not await served.engine.is_healthy():
            if getattr(served.engine, "lacks_model", False):
                raise model_removed(served.name)
            raise ServiceUnavailable(f"The engine of '{served.name}' does not answer. Try again in a moment.")
        if refusal_s := served.engine.refusal_s:
            raise RateLimited(OVERLOADED_MESSAGE, retry_after=ceil(refusal_s))
    if known.reserve is not None:
        prepared = await known.reserve(prepared)
        reserved = prepared.context.create_request
        create_request = replace(create_request, charges=reserved.charges, granted_calls=reserved.granted_calls)
    run = create_run(create_request, prepared, owner, known.slot)
    # Last, so that a refused request uses no denial.
    await approvals.claim_denials(create_request, prepared.context.items, prepared.context.input_items, uid)
    return run, prepared


async def wait_created(run: Run, prepared: PreparedRequest) -> None:
    """Wait until the first events of the run are durable. Raises ApiError; then the run does not exist."""
    try:
        await run.wait_created()
    except (InvalidRequest, NotFound):
        # The conversation has changed. Behind other errors the response may be stored.
        context = prepared.context
        await approvals.release_denials(context.create_request, context.items, context.input_items, run.uid)
        raise


def create_run(create_request: CreateRequest, prepared: PreparedRequest, owner: RunOwner, slot: int | None = None) -> Run:
    """Create the run of a new response. Without a worker the run only writes the first events and waits in the queue."""
    now, planner = time.time(), RoundPlanner(prepared)
    writer = Writer(
        response_object.initial_response(create_request, prepared.context.served, prepared.context.uid, int(now)),
        new_id,
        encrypted_content.encryptor(create_request),
    )
    log = _log(create_request, prepared, owner, now)
    if log is not None:
        log.slot, log.reservation = slot, prepared.reservation
    output = ResponseOutput(writer, DurablePublisher(Broadcast(), owner.recorder, log))
    rounds = Rounds(planner.create(*planner.first()), output, planner.loop())
    hooks = make_compaction_hook(create_request, prepared), make_diagnostics_hook(create_request, prepared)
    options = RunOptions.from_request(create_request, *hooks)
    return Run(output, rounds, options, queued=owner.worker is None)


def _log(create_request: CreateRequest, prepared: PreparedRequest, owner: RunOwner, now: float) -> ResponseLog | None:
    """Return the log of the response; None if nothing is stored."""
    context = prepared.context
    if not context.has_log:
        return None
    record = RequestRecord(
        create_request.dump(),
        prepared.request.prompt,
        context.served.name,
        create_request.priority,
        encrypt_secrets(context.uid, create_request.secrets),
    )
    row = _row(context.uid, create_request, now, context.before)
    items = [*context.before.unsaved, *context.input_items]
    return ResponseLog(row, items, storable(context.images, items), record, owner.worker, charges=create_request.charges)


def _row(uid: str, create_request: CreateRequest, now: float, before: ConversationContext) -> Response:
    return Response(
        uid=uid,
        request_id=create_request.request_id,
        project=create_request.project,
        key_id=create_request.key,
        model=create_request.model,
        status=Status.QUEUED if create_request.background else Status.IN_PROGRESS,
        background=create_request.background,
        streamed=create_request.stream,
        stored=create_request.store,
        thread=before.thread or uid,
        previous_uid=create_request.previous_response_id,
        rerun_of=create_request.rerun_of or "",
        api_format=create_request.api_format,
        fingerprint=create_request.fingerprint,
        user_id=create_request.user,
        conversation_id=before.conversation,
        history=list(before.history),
        # The log has the exact value.
        metadata=storable_metadata(create_request.metadata),
        created_at=datetime.fromtimestamp(now, UTC),
    )
