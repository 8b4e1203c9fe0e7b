"""The loop of one response: tokens in, events out, each encoded once, numbered once, durable before it is visible."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from datetime import UTC, datetime
from typing import Any, TypeAlias

import orjson
from django.db import DatabaseError

from responses_app.dialects.base import Listener
from responses_app.engines.border import BadPrompt, Engine, EngineError, Finish, Request
from responses_app.errors import ApiError, Failed, Invalid, Unavailable
from responses_app.grammar.events import Event
from responses_app.grammar.pieces import Break, Compaction, Piece
from responses_app.grammar.writer import Writer
from responses_app.runs.conversation import locked
from responses_app.runs.shape import usage
from responses_app.runs.tally import Tally
from responses_app.store.recorder import Recorder
from responses_app.store.records import Append, Ending, Frame, Locked, Log

logger = logging.getLogger("responses.run")

Shorten: TypeAlias = Callable[[Sequence[Mapping[str, Any]], int], Awaitable[tuple[Compaction, int] | None]]
STOPPED = "The server was stopped before this response was complete."


class Run:
    """One response while it is made. A task of the hub drives `go`; any number of listeners follow `frames`.

    `log` is None for `store:false`: then nothing is written and an event is visible at once. With `patient` false
    (RESPONSES_DURABILITY=terminal) only the terminal event waits for the database. A queued one starts when `gate` lets it in.
    `shorten` is asked at the end for a compaction, with the output and the length of the context in tokens.
    """

    def __init__(
        self,
        writer: Writer,
        engine: Engine,
        request: Request,
        listener: Listener,
        *,
        recorder: Recorder,
        log: Log | None,
        patient: bool = True,
        gate: asyncio.Semaphore | nullcontext[None] | None = None,
        shorten: Shorten | None = None,
    ) -> None:
        self.uid: str = writer.response["id"]
        self.background: bool = writer.response["background"]
        self.frames: list[Frame] = []
        self.ended = False
        self.problem: ApiError | None = None
        self.tally = Tally(prompt=request.length or len(request.prompt))
        self._writer, self._engine, self._request, self._listener = writer, engine, request, listener
        self._recorder, self._log, self._patient = recorder, log, patient
        self._listeners: set[asyncio.Future[bool]] = set()
        self._task: asyncio.Task[None] | None = None
        self._gate = gate or nullcontext()
        self._shorten = shorten
        self._left = self._stopped = False
        self._pending: asyncio.Future[Exception | None] | None = None

    @property
    def stored(self) -> bool:
        """Whether the response is kept."""
        return self._log is not None

    @property
    def queued(self) -> bool:
        """Whether it waits for its turn, so that no engine has heard of it yet."""
        return self._writer.waiting

    def own(self, task: asyncio.Task[None]) -> None:
        """Called once by the hub with the task that drives `go`."""
        self._task = task

    def leave(self) -> None:
        """The client is gone: stop the engine, close the open item, keep what was generated (decision F4)."""
        if not self._left and self._task is not None:
            self._left = True
            self._task.cancel()

    def stop(self) -> None:
        """The server stops. Whoever polls a background response is told that it failed: nobody has cancelled it."""
        if not self._left:
            self._stopped = self.background
        self.leave()

    async def opened(self) -> None:
        """The first events are durable. Raises ApiError if they cannot be, and then the run is nothing.

        If the caller goes away while it waits, so does the run, unless it is one of the background: the log is closed.
        """
        try:
            async with aclosing(self.listen()) as frames:
                async for _ in frames:
                    return
        except asyncio.CancelledError:
            if not self.background:
                self.leave()
            raise
        raise self.problem or Failed("The response ended before it began.")

    async def go(self) -> None:
        """Generate to the end. Ends with exactly one terminal event, whatever happens."""
        self.tally.began = time.monotonic()
        try:
            await self._tell(self._writer.open(), opens=True)
            async with self._gate:
                await self._start()
                await self._generate()
        except asyncio.CancelledError:
            await self._finish_cancelled()
        except BadPrompt as error:
            self.problem = Invalid(str(error))
            await self._fail("invalid_prompt", str(error))
        except EngineError as error:
            logger.error("%s: engine: %s", self.uid, error)
            await self._fail("server_error", f"The engine failed: {error}")
        except Locked:
            self.problem = locked()
        except DatabaseError:
            await self._fail_unstored()
        except Exception:
            logger.exception("%s: run failed", self.uid)
            await self._fail("server_error", "The server failed while it generated this response.")
        finally:
            self._judge()
            self.ended = True
            self._wake()
            self._report()

    async def listen(self, after: int = -1, pause: float = 10.0) -> AsyncGenerator[Frame | None, None]:
        """Frames with numbers above `after` up to the terminal one; None after each `pause` seconds of silence."""
        place = after + 1
        while True:
            while place < len(self.frames):
                place += 1
                yield self.frames[place - 1]
            if self.ended:
                return
            if not await self._news(pause):
                yield None

    async def done(self) -> Frame:
        """The terminal frame, once it is there."""
        async for frame in self.listen(len(self.frames) - 1):
            del frame
        return self.frames[-1]

    async def _start(self) -> None:
        """The turn of a queued response has come; any other runs since it was opened."""
        if self.queued:
            self.tally.began = time.monotonic()
            await self._tell(self._writer.start(), starts=True)

    async def _generate(self) -> None:
        finish: Finish | None = None
        events: list[Event] = []
        async with aclosing(self._engine.generate(self._request)) as chunks:
            async for chunk in chunks:
                self.tally.count(chunk)
                events = self._write(self._listener.hear(chunk))
                # When nothing more will be said, leaving the loop stops the engine.
                finish = "stop" if self._listener.done else chunk.finish
                if finish is not None:
                    break
                await self._tell(events)
                events = []
        events += self._write(self._listener.close())
        if self._shorten is not None and finish == "stop":
            await self._tell(events + self._write([Break()]))
            events = await self._compacted(self._shorten)
        await self._tell(events + self._finish(finish), ends=True)

    async def _compacted(self, shorten: Shorten) -> list[Event]:
        """The compaction that ends a long context, if it is wanted; its tokens are of this response (responses-api.md §3.6)."""
        found = await shorten(self._writer.response["output"], self.tally.prompt + self.tally.output)
        if found is None:
            return []
        piece, tokens = found
        self.tally.output += tokens
        return self._write([piece])

    def _finish(self, finish: Finish | None) -> list[Event]:
        now, figures = int(time.time()), self._usage()
        if finish == "stop":
            return self._writer.complete(now=now, usage=figures, service_tier="default")
        if finish == "length":
            return self._writer.cut("max_output_tokens", now=now, usage=figures, service_tier="default")
        return self._failure("server_error", "The engine stopped this response before it was complete.")

    async def _finish_cancelled(self) -> None:
        """Close the log as cancelled, unless the end had been written already and only its commit was awaited."""
        if self._writer.ended:
            await self._settle()
            return
        if self._stopped:
            await self._tell(self._failure("server_error", STOPPED), ends=True)
        else:
            await self._tell(self._writer.cancel(usage=self._spent()), ends=True)

    async def _fail(self, code: str, message: str) -> None:
        if self._writer.ended:
            await self._settle()
            return
        await self._tell(self._failure(code, message), ends=True)

    async def _fail_unstored(self) -> None:
        if self.frames:
            await self._fail("server_error", "The response could not be stored.")
        else:
            self.problem = Unavailable("The database does not answer. Try again in a moment.")

    def _failure(self, code: str, message: str) -> list[Event]:
        self.problem = self.problem or Failed(message, code=code)
        return self._writer.fail(code, message, usage=self._spent())

    def _judge(self) -> None:
        """A failure that only the end brought to light, such as arguments that do not parse, is a problem too."""
        response = self._writer.response
        if self.problem is None and response["status"] == "failed":
            self.problem = Failed(response["error"]["message"], code=response["error"]["code"])

    async def _settle(self) -> None:
        if self._pending is not None and not self._pending.done():
            await asyncio.wait({self._pending})

    async def _news(self, pause: float) -> bool:
        """Wait for a frame or the end; False after `pause` seconds without either. Cheaper per event than asyncio.wait_for."""
        loop = asyncio.get_running_loop()
        news: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(pause, _tell, news, False)
        self._listeners.add(news)
        try:
            return await news
        finally:
            timer.cancel()
            self._listeners.discard(news)

    def _write(self, pieces: Iterable[Piece]) -> list[Event]:
        return [event for piece in pieces for event in self._writer.write(piece)]

    async def _tell(self, events: list[Event], *, opens: bool = False, starts: bool = False, ends: bool = False) -> None:
        """Make `events` durable, then visible. A cancellation while this waits loses nothing: the commit goes on."""
        if not events:
            return
        frames = [Frame(event["sequence_number"], event["type"], orjson.dumps(event)) for event in events]
        if self._log is None:
            self._show(frames)
            return
        append = Append(self._log, frames, opens=opens, starts=starts, ending=self._ending() if ends else None)
        if not self._patient and not ends and not opens:
            self._recorder.append(append, _ignore)
            self._show(frames)
            return
        error = await self._durable(append)
        if error is not None and ends:
            # There is no place left to keep it; the listeners must still hear the end.
            self._show(frames)
        elif error is not None:
            raise error

    async def _durable(self, append: Append) -> Exception | None:
        """Append, show what was appended as soon as it is durable, and only then go on."""
        pending: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

        def done(error: Exception | None) -> None:
            if error is None:
                self._show(append.frames)
            if not pending.done():
                pending.set_result(error)

        self._pending = pending
        self._recorder.append(append, done)
        return await pending

    def _ending(self) -> Ending:
        response: dict[str, Any] = self._writer.response
        error = response["error"] or {}
        return Ending(response["status"], datetime.now(UTC), response["output"], response["usage"], error.get("code", ""))

    def _usage(self) -> dict[str, Any]:
        tally = self.tally
        return usage(tally.prompt, tally.cached, tally.output, self._listener.reasoning_tokens)

    def _spent(self) -> dict[str, Any] | None:
        """The usage of one that ends early: nothing, if no engine has heard of it."""
        return None if self.queued else self._usage()

    def _show(self, frames: Sequence[Frame]) -> None:
        self.frames.extend(frames)
        self._wake()

    def _wake(self) -> None:
        for news in self._listeners:
            _tell(news, True)

    def _report(self) -> None:
        tally, now = self.tally, time.monotonic()
        ttft = (tally.first or now) - tally.began
        logger.info(
            "%s %s in=%d cached=%d out=%d ttft=%.3fs total=%.3fs",
            self.uid,
            self._writer.response["status"],
            tally.prompt,
            tally.cached,
            tally.output,
            ttft,
            now - tally.began,
        )


def _tell(news: asyncio.Future[bool], value: bool) -> None:
    if not news.done():
        news.set_result(value)


def _ignore(error: Exception | None) -> None:
    """Nobody waits for this append; the recorder has logged what was wrong."""
    del error
