"""How a response ends, in one of the six ways, and what is made of an end that cannot be kept."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError

from responses_app.dialects.base import OutputParser
from responses_app.engine_interface import Finish
from responses_app.errors import ApiError, InternalError, InvalidRequest, ServiceUnavailable
from responses_app.protocol.deltas import Delta
from responses_app.protocol.events import Event
from responses_app.protocol.writer import Writer
from responses_app.runs.execute.publisher import DurablePublisher
from responses_app.runs.execute.response_object import usage
from responses_app.runs.execute.usage import UsageCounter
from responses_app.store.log.reader import TERMINAL
from responses_app.store.log.records import Ending, EventFrame, Fenced, ResponseLog
from responses_app.store.log.writer import LogWriter

logger = logging.getLogger("responses.run")


# The code of a response whose prompt the engine refuses: the client's mistake, and a 400 where nothing is streamed.
INVALID_PROMPT = "invalid_prompt"
# The tier of every response that has ended: whichever was asked for decides about the queue of the engine alone.
SERVED_TIER = "default"


def error_of(response: Mapping[str, Any]) -> ApiError | None:
    """Return the HTTP error that tells the same as the `error` of a failed response; None if it has not failed."""
    error = response.get("error")
    if response["status"] != "failed" or error is None:
        return None
    kind = InvalidRequest if error["code"] == INVALID_PROMPT else InternalError
    return kind(error["message"], code=error["code"])


class RunEndings(DurablePublisher):
    """A feed that knows its writer, and so how to end. `problem` is why there is not a single frame, if there is none.

    Without `aloud` a failure is told by the terminal event alone.
    """

    def __init__(
        self,
        writer: Writer,
        listener: OutputParser,
        tally: UsageCounter,
        *,
        recorder: LogWriter,
        log: ResponseLog | None,
        wait_for_commit: bool,
        frames: Sequence[EventFrame],
        emit_error_event: bool,
    ) -> None:
        super().__init__(recorder, log, wait_for_commit=wait_for_commit, frames=frames)
        self.uid: str = writer.response["id"]
        self.problem: ApiError | None = None
        self.tally = tally
        self._writer, self._listener, self._aloud = writer, listener, emit_error_event

    @property
    def response(self) -> Mapping[str, Any]:
        """Its snapshot. Shared with the events: not to be changed."""
        return self._writer.response

    def _write(self, pieces: Iterable[Delta]) -> list[Event]:
        return [event for piece in pieces for event in self._writer.write(piece)]

    def _finish(self, finish: Finish | None) -> list[Event]:
        now, figures = int(time.time()), self._usage()
        if finish == "stop":
            return self._writer.complete(now=now, usage=figures, aloud=self._aloud, service_tier=SERVED_TIER)
        if finish == "length":
            return self._writer.end_incomplete("max_output_tokens", now=now, usage=figures, service_tier=SERVED_TIER)
        return self._failure("server_error", "The engine stopped this response before it was complete.")

    def _steered_ending(self) -> list[Event]:
        """What was held back is said, whatever is open closes incomplete, and `response.incomplete` says why."""
        held = self._write(self._listener.finish())
        return held + self._writer.end_incomplete(
            "steered", now=int(time.time()), usage=self._usage(), service_tier=SERVED_TIER
        )

    async def _fail(self, code: str, message: str) -> bool:
        if self._writer.ended:
            await self.wait_idle()
            return self._ends_open
        return await self._end_with(self._failure(code, message))

    async def _end_with(self, events: list[Event]) -> bool:
        """Tell the end that is not the usual one. Whether it could not be kept, so that somebody has to go on."""
        try:
            await self.publish_and_wait(events, ending=self._ending)
        except DatabaseError as error:
            return self._on_database_error(error)
        return False

    @property
    def _ends_open(self) -> bool:
        """Whether the terminal frame was written, but could not be shown."""
        return not self.frames or self.frames[-1].type not in TERMINAL

    def _on_database_error(self, error: DatabaseError) -> bool:
        """The log cannot be written, or not by this process. What was shown is true, and whoever holds the lease goes on."""
        logger.log(logging.INFO if isinstance(error, Fenced) else logging.ERROR, "%s: left to others: %s", self.uid, error)
        if not self.frames:
            self.problem = ServiceUnavailable("The database does not answer. Try again in a moment.")
            return False
        return True

    def _failure(self, code: str, message: str) -> list[Event]:
        kind = InvalidRequest.type if code == INVALID_PROMPT else InternalError.type
        return self._writer.fail(code, message, kind, usage=self._partial_usage(), aloud=self._aloud, service_tier=SERVED_TIER)

    def _ending(self) -> Ending:
        response: dict[str, Any] = self._writer.response
        error = response["error"] or {}
        return Ending(response["status"], datetime.now(UTC), response["output"], response["usage"], error.get("code", ""))

    def _usage(self) -> dict[str, Any]:
        tally = self.tally
        return usage(tally.prompt, tally.cached, tally.output, self._listener.reasoning_tokens)

    def _partial_usage(self) -> dict[str, Any] | None:
        """The usage of one that ends early: nothing, if no engine has heard of it."""
        return None if self._writer.is_queued else self._usage()

    def _log_summary(self) -> None:
        tally, now = self.tally, time.monotonic()
        ttft = (tally.first or now) - tally.began
        logger.info(
            "%s %s in=%d cached=%d out=%d ttft=%.3fs total=%.3fs",
            self.uid,
            "moved" if self.handed_over else self._writer.response["status"],
            tally.prompt,
            tally.cached,
            tally.output,
            ttft,
            now - tally.began,
        )
