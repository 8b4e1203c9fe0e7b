"""Factory of runs: creates a run from a request and the preparation of the request."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias
from uuid import UUID

import orjson
from django.conf import settings

from responses_app.dialects.base import OutputParser
from responses_app.engine_interface import GenerateRequest
from responses_app.errors import InvalidRequest
from responses_app.models import Response, Status
from responses_app.protocol.deltas import Delta, McpTools
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.items.base import Item
from responses_app.protocol.writer import Writer
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute import response_object
from responses_app.runs.execute.broadcast import Broadcast
from responses_app.runs.execute.endings import RunEndings
from responses_app.runs.execute.generation import Generation
from responses_app.runs.execute.output import ResponseOutput
from responses_app.runs.execute.publisher import DurablePublisher
from responses_app.runs.execute.rounds import Round, RoundProgress, Rounds, ToolLoop
from responses_app.runs.execute.run import CompactionHook, ResumeState, Run
from responses_app.runs.ids import new_id
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare import encrypted_content
from responses_app.runs.prepare.planner import NextRound, PreparedRequest, plan_round
from responses_app.runs.server_tools.call_limit import CallLimit
from responses_app.runs.server_tools.call_parser import OpeningParser
from responses_app.runs.server_tools.request_secrets import encrypt_secrets
from responses_app.store.content.history import ConversationContext
from responses_app.store.log.records import RequestRecord, ResponseLog
from responses_app.store.log.token_log import RoundEnd
from responses_app.store.log.writer import LogWriter
from responses_app.tools.base import ToolExecutor
from responses_app.tools.limits import ToolLimits

# Returns the tools that the server runs for a request, from the request and the id of the response; None without any.
ToolFactory: TypeAlias = Callable[[CreateRequest, str], ToolExecutor | None]


class RoundFactory:
    """Rounds of a run: engine, prompts and parsers. `owner_epoch` distinguishes the processes that run the response in turn."""

    def __init__(
        self, uid: str, served: ServedModel, plan: PreparedRequest, tools: ToolExecutor | None = None, owner_epoch: int = 1
    ) -> None:
        self._uid, self._served, self._plan = uid, served, plan
        self._tools, self._owner_epoch = tools, owner_epoch
        self._limit = None if tools is None else CallLimit(tools, plan.context.create_request.max_server_calls)

    def create(
        self,
        request: GenerateRequest,
        parser: OutputParser,
        tokens: Sequence[int] = (),
        end: RoundEnd | None = None,
        *,
        number: int = 0,
    ) -> Round:
        """Create the round `number`. `tokens` are the tokens, and `end` the end, that an earlier owner has saved."""
        assert self._served.dialect is not None  # noqa: S101 - started
        generation = Generation(
            self._served.engine,
            request if settings.RESPONSES_COALESCE_DELTAS else replace(request, may_join=False),
            self._served.dialect.token_text,
            tokens=tokens,
            wait=settings.RESPONSES_ENGINE_WAIT,
            owner_epoch=self._owner_epoch,
            # A client that is answered 429 can repeat the request only if nothing has happened for it yet.
            is_patient=number > 0 or self._owner_epoch > 1 or self._plan.context.create_request.background,
        )
        if number == 0 and self._prepares:
            return Round(generation, parser, 0, end, generates=False)
        return Round(generation, parser, request.length or len(request.prompt), end)

    async def plan(
        self, number: int, output: Sequence[Item], spent: int, *, measure: bool = False
    ) -> tuple[GenerateRequest, OutputParser]:
        """Build request and parser of the round `number`, which is not the first round. Raises ApiError.

        `output` are the items of the response so far, `spent` its output tokens so far. With `measure` the length of the prompt is known.
        """
        offer = None if self._tools is None else self._tools.offer([*self._plan.context.items, *output])
        left = None if self._limit is None else self._limit.left(output)
        if self._limit is not None and left == 0:
            output = self._limit.with_note(output)
        is_first = number == 1 and self._prepares and left != 0
        step = NextRound(f"{self._uid}-r{number}", output, spent, offer, left, is_first, measure)
        return await plan_round(self._plan.context, step)

    def first(self) -> tuple[GenerateRequest, OutputParser]:
        """Return request and parser of the first round. A plan with openings begins with a round that generates nothing."""
        if self._prepares:
            openings = self._plan.context.openings
            return self._plan.request, OpeningParser(openings if self._limit is None else self._limit.cut_openings(openings))
        return self._plan.request, self._plan.parser

    async def next(self, number: int, output: Sequence[Item], spent: int) -> Round:
        """Create the round `number`, which is not the first round. Raises ApiError."""
        return self.create(*await self.plan(number, output, spent), number=number)

    def loop(self) -> ToolLoop | None:
        """Return the tool loop of the run; None without tools."""
        if self._tools is None:
            return None
        create_request = self._plan.context.create_request
        return ToolLoop(
            self._tools,
            self.next,
            ToolLimits.from_settings(),
            self._prepares,
            create_request.max_output_tokens,
            create_request.include,
            self.check_listing,
        )

    async def check_listing(self, item: Item, result: Delta) -> Delta:
        """Return a failed listing in place of a listing whose tools the model's context has no place for."""
        limit = self._served.engine.max_model_len
        # Only a list with more bytes than the context has tokens can be too long by itself.
        if not isinstance(result, McpTools) or self._tools is None or len(orjson.dumps(result.tools)) < limit:
            return result
        offer = self._tools.offer([*self._plan.context.items, {**item, "tools": result.tools}])
        context = self._plan.context
        free = replace(context, create_request=replace(context.create_request, tool_choice="auto"))
        try:
            await plan_round(free, NextRound(f"{self._uid}-listing", (), 0, offer))
        except InvalidRequest as error:
            if error.code != "context_length_exceeded":
                return result
            return McpTools(error=f"The tools of the MCP server do not fit the context of the model, which has {limit} tokens.")
        return result

    @property
    def _prepares(self) -> bool:
        return bool(self._plan.context.openings)


def create_run(
    uid: str,
    create_request: CreateRequest,
    served: ServedModel,
    plan: PreparedRequest,
    recorder: LogWriter,
    worker: UUID | None,
    tools: ToolExecutor | None = None,
    compaction_hook: CompactionHook | None = None,
) -> Run:
    """Create the run of the new response `uid`. Without `worker` the run only writes the first events and waits in the queue."""
    now, rounds = time.time(), RoundFactory(uid, served, plan, tools)
    return compose_run(
        Writer(
            response_object.initial_response(create_request, served, uid, int(now)),
            new_id,
            encrypted_content.encryptor(create_request),
        ),
        rounds.create(*rounds.first()),
        recorder,
        _log(uid, create_request, served, plan, worker, now),
        loop=rounds.loop(),
        emit_error_event=create_request.emit_error_event,
        queued=worker is None,
        generates=create_request.generate,
        compaction_hook=compaction_hook,
        max_run_seconds=create_request.max_run_seconds,
    )


def compose_run(
    writer: Writer,
    first: Round,
    recorder: LogWriter,
    log: ResponseLog | None,
    *,
    loop: ToolLoop | None = None,
    progress: RoundProgress | None = None,
    frames: Sequence[EventFrame] = (),
    emit_error_event: bool = True,
    queued: bool = False,
    generates: bool = True,
    compaction_hook: CompactionHook | None = None,
    resume: ResumeState | None = None,
    max_run_seconds: int | None = None,
) -> Run:
    """Compose a run. `frames` are the frames that earlier owners have published, `progress` is the position in the log."""
    wait_for_commit = settings.RESPONSES_DURABILITY != "terminal"
    publisher = DurablePublisher(Broadcast(frames), recorder, log, wait_for_commit=wait_for_commit)
    output = ResponseOutput(writer, publisher)
    rounds = Rounds(first, output, loop, progress)
    endings = RunEndings(output, rounds.usage, emit_error_event=emit_error_event)
    return Run(
        output,
        rounds,
        endings,
        queued=queued,
        generates=generates,
        compaction_hook=compaction_hook,
        resume=resume,
        max_run_seconds=max_run_seconds,
    )


def _log(
    uid: str, create_request: CreateRequest, served: ServedModel, plan: PreparedRequest, worker: UUID | None, now: float
) -> ResponseLog | None:
    """Return the log of the response; None if nothing is stored."""
    if not (create_request.store or create_request.background or plan.context.before.conversation is not None):
        return None
    secrets = encrypt_secrets(uid, create_request.secrets)
    record = RequestRecord(create_request.dump(), plan.request.prompt, served.name, create_request.priority, secrets)
    context = plan.context
    row = _row(create_request, uid, now, context.before)
    return ResponseLog(row, [*context.before.unsaved, *context.input_items], context.fetched, record, worker)


def _row(create_request: CreateRequest, uid: str, now: float, before: ConversationContext) -> Response:
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
        conversation_id=before.conversation,
        history=list(before.keys),
        # jsonb cannot hold NUL; the log has the exact value.
        metadata={key.replace("\0", ""): value.replace("\0", "") for key, value in create_request.metadata.items()},
        created_at=datetime.fromtimestamp(now, UTC),
    )
