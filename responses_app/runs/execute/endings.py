"""Endings of a run: completed, incomplete, failed, cancelled, steered, or left to another process."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError

from responses_app.engine_interface import EngineError, EngineLacksModel, Finish
from responses_app.errors import ApiError, DatabaseAway, InternalError, InvalidRequest, RateLimited, ServiceUnavailable
from responses_app.protocol.events import Event
from responses_app.protocol.output_problems import UNFINISHED_CALL, UNFINISHED_MARKER
from responses_app.runs.execute.generation import NotResumable
from responses_app.runs.execute.output import ResponseOutput
from responses_app.runs.execute.response_object import tool_usage
from responses_app.runs.prepare.items.conversation import locked, missing, no_previous
from responses_app.store.content.conversations import ConversationDeleted, ConversationLocked
from responses_app.store.content.history import PreviousDeleted
from responses_app.store.log.reader import TERMINAL
from responses_app.store.log.records import Ending, Fenced

logger = logging.getLogger("responses.run")


# Error code of a response whose prompt the engine refuses: a mistake of the client, and a 400 where nothing is streamed.
INVALID_PROMPT = "invalid_prompt"
# Error code of a response that the engine refuses because too many requests wait: a 429 where nothing is streamed.
OVERLOADED = "rate_limit_exceeded"
OVERLOADED_MESSAGE = "The engine has too many requests. Try again in a moment."
# Reasons in `incomplete_details`, besides `max_output_tokens`.
STEERED, TIME_LIMIT = "steered", "max_run_seconds"
# Service tier of every response that has ended: the requested tier decides only about the place in the queue of the engine.
SERVED_TIER = "default"


def error_of(response: Mapping[str, Any]) -> ApiError | None:
    """Return the HTTP error that corresponds to the `error` of a failed response; None if the response has not failed."""
    error = response.get("error")
    if response["status"] != "failed" or error is None:
        return None
    if error["code"] == OVERLOADED:
        return RateLimited(error["message"])
    kind = InvalidRequest if error["code"] == INVALID_PROMPT else InternalError
    return kind(error["message"], code=error["code"])


def model_removed(name: str) -> ServiceUnavailable:
    """Return the error for a model that the engine does not serve any more."""
    return ServiceUnavailable(
        f"The engine does not serve the model '{name}' any more. Choose another model, or try again later."
    )


class RunEndings:
    """Ending policy of a run. Each ending is an append: the open items close, then comes the terminal event.

    `usage` returns the usage object of the run so far. With `emit_error_event` false a failure is reported by the terminal event
    alone. The methods return whether the run is handed over: the ending could not be written, so another process must continue.
    `problem` is the error of a run without a single durable event, or of a model that the engine has removed.
    """

    def __init__(self, output: ResponseOutput, usage: Callable[[], dict[str, Any]], *, emit_error_event: bool = True) -> None:
        self.problem: ApiError | None = None
        # `prompt_cache_diagnostics`, if the request asks for it.
        self.cache_diagnostics: dict[str, Any] | None = None
        self._output, self._writer, self._usage = output, output.writer, usage
        self._emit_error_event = emit_error_event

    async def finish(
        self,
        finish: Finish | None,
        *,
        fill: bool = True,
        stop_sequence: str | None = None,
        limit: Mapping[str, Any] | None = None,
    ) -> bool:
        """End as the engine ended: completed, incomplete, or failed.

        `fill` adds an empty message to an answer without items. A completed response names the `stop_sequence` that ended its text,
        an incomplete response the `limit`.
        """
        now, usage = int(self._time()), self._usage()
        if finish == "stop":
            fields = self._final_fields() if stop_sequence is None else {**self._final_fields(), "stop_sequence": stop_sequence}
            return await self._end(self._writer.complete(now=now, usage=usage, fill=fill, **fields))
        if finish == "length":
            fields = {"limit": limit, **self._final_fields()}
            return await self._end(self._writer.end_incomplete("max_output_tokens", now=now, usage=usage, **fields))
        return await self._end(self._failure("server_error", "The engine stopped this response before it was complete."))

    async def fail(self, code: str, message: str) -> bool:
        """End as failed, unless the terminal event was written already; then wait for the commit."""
        if self._writer.ended:
            return await self.settle()
        return await self._end(self._failure(code, message))

    async def fail_by_engine(self, error: EngineError) -> bool:
        """End as failed by an error of the engine."""
        if isinstance(error, EngineLacksModel):
            self.problem = model_removed(self._writer.response["model"])
            return await self.fail("server_error", self.problem.message)
        return await self.fail("server_error", str(error) if isinstance(error, NotResumable) else f"The engine failed: {error}")

    async def cancel(self) -> bool:
        """End as cancelled."""
        return await self._end(self._writer.cancel(usage=self._partial_usage(), **self._final_fields()))

    async def end_early(self, reason: str, limit: Mapping[str, Any] | None = None) -> bool:
        """End as incomplete for `reason`: the client continues with more input, or the running time is over, by `limit`."""
        now, usage = int(self._time()), self._usage()
        return await self._end(self._writer.end_incomplete(reason, now=now, usage=usage, limit=limit, **self._final_fields()))

    async def settle(self) -> bool:
        """Wait for the commits under way and end nothing; the run is handed over unless the terminal event is visible."""
        publisher = self._output.publisher
        await publisher.wait_idle()
        frames = publisher.broadcast.frames
        return not frames or frames[-1].type not in TERMINAL

    def on_database_error(self, error: DatabaseError) -> bool:
        """Leave the run to another process: the log cannot be written, or not by this process."""
        if isinstance(error, ConversationLocked):
            self.problem = locked()
            return False
        if isinstance(error, ConversationDeleted):
            self.problem = missing(self._writer.response["conversation"]["id"])
            return False
        if isinstance(error, PreviousDeleted):
            self.problem = no_previous(self._writer.response["previous_response_id"])
            return False
        uid = self._writer.response["id"]
        is_begun = bool(self._output.publisher.broadcast.frames)
        outcome = "left to others" if is_begun else "not stored"
        logger.log(logging.INFO if isinstance(error, Fenced) else logging.ERROR, "%s: %s: %s", uid, outcome, error)
        if not is_begun:
            self.problem = DatabaseAway()
            return False
        return True

    async def _end(self, events: list[Event]) -> bool:
        response = self._writer.response
        # What a limit or a client cuts is no fault of the model.
        expected = () if response["status"] == "completed" else (UNFINISHED_CALL, UNFINISHED_MARKER)
        for problem in self._writer.output_problems:
            if problem["type"] not in expected:
                logger.warning("%s: output %s: %s", response["id"], problem.get("output_index"), problem["message"])
        try:
            await self._output.publish_and_wait(events, ending=self._ending)
        except DatabaseError as error:
            return self.on_database_error(error)
        return False

    def _failure(self, code: str, message: str) -> list[Event]:
        kinds = {INVALID_PROMPT: InvalidRequest.type, OVERLOADED: RateLimited.type}
        kind = kinds.get(code, InternalError.type)
        usage, emit = self._partial_usage(), self._emit_error_event
        return self._writer.fail(code, message, kind, usage=usage, emit_error_event=emit, **self._final_fields())

    def _final_fields(self) -> dict[str, Any]:
        fields = {"service_tier": SERVED_TIER, "tool_usage": tool_usage(self._writer.output.items)}
        return fields if self.cache_diagnostics is None else {**fields, "prompt_cache_diagnostics": self.cache_diagnostics}

    def _ending(self) -> Ending:
        response: dict[str, Any] = self._writer.response
        error = response["error"] or {}
        ended_at = datetime.fromtimestamp(self._time(), UTC)
        return Ending(response["status"], ended_at, response["output"], response["usage"], error.get("code", ""))

    def _time(self) -> float:
        """Return the time, at least that of the creation: the host that created the response may have a clock that is ahead."""
        return max(time.time(), float(self._writer.response["created_at"]))

    def _partial_usage(self) -> dict[str, Any] | None:
        """Return the usage of a run that ends early; None if the run has not started."""
        return None if self._writer.is_queued else self._usage()
