"""Writing process of the load on Postgres: streams of events through the log writer, as a web process sends them.

Started by `bench.capacity.postgres_load`. Prints `ready`, waits for a line, writes for a time, prints the counts, and waits again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import django
from django.db import connection

if TYPE_CHECKING:
    from responses_app.protocol.encoding import EventFrame
    from responses_app.store.log.records import ResponseLog
    from responses_app.store.log.writer import LogWriter

MODEL = "gpt-oss-20b"
PROMPT_TOKENS = 200
# Logs that all streams repeat, so that the encoding of events is not measured.
TEMPLATES = 16


@dataclass(slots=True)
class Counts:
    """Counts of a process: responses, events and their bytes, appends, seconds, and CPU seconds of the process."""

    responses: int = 0
    events: int = 0
    event_bytes: int = 0
    appends: int = 0
    seconds: float = 0.0
    cpu: float = 0.0


class WriteLoad:
    """Streams that write responses in turn, `batch` deltas in an append, each append after the commit before."""

    def __init__(self, deltas: int, batch: int, rate: float) -> None:
        from bench.support.logs import make_log

        chance = random.Random(1)
        self.counts = Counts()
        # Seconds from each append to its commit.
        self.waits = list[float]()
        self._logs = [make_log(deltas, chance) for _ in range(TEMPLATES)]
        self._batch, self._pause = batch, batch / rate if rate else 0.0
        self._worker = uuid4()
        self._until = 0.0

    async def run(self, streams: int, seconds: float) -> None:
        """Write for so many seconds and print the counts. The session of the writer stays until the parent has read the CPU time."""
        from responses_app.store.log.rows.event_codec import packing
        from responses_app.store.log.writer import LogWriter

        packing.allowed = True
        writer = LogWriter()
        began, cpu = time.monotonic(), time.process_time()
        await self.write(writer, streams, seconds)
        self.counts.seconds, self.counts.cpu = time.monotonic() - began, time.process_time() - cpu
        print(json.dumps(asdict(self.counts)), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await writer.close()

    async def write(self, writer: LogWriter, streams: int, seconds: float) -> None:
        """Write for so many seconds, and each stream until the response has ended."""
        self._until = time.monotonic() + seconds
        await asyncio.gather(*(self._stream(writer, number) for number in range(streams)))

    async def _stream(self, writer: LogWriter, number: int) -> None:
        # Streams begin at different times, so that their commits are not in step.
        await asyncio.sleep(self._pause * number / 64)
        while time.monotonic() < self._until:
            await self._response(writer, self._logs[number % TEMPLATES])

    async def _response(self, writer: LogWriter, frames: list[EventFrame]) -> None:
        from responses_app.engine_interface import Chunk
        from responses_app.store.log.records import Append
        from responses_app.store.log.token_log import pack

        log = self._new_log()
        await self._append(writer, Append(log, frames[:2], opens=True))
        for at in range(2, len(frames) - 1, self._batch):
            part = frames[at : min(at + self._batch, len(frames) - 1)]
            await self._append(writer, Append(log, part, tokens=pack([Chunk((1,))] * len(part))))
            if self._pause:
                await asyncio.sleep(self._pause)
        await self._append(writer, Append(log, frames[-1:], ending=_ending(log.row.uid, frames[-1])))
        self.counts.responses += 1

    def _new_log(self) -> ResponseLog:
        from django.utils import timezone

        from responses_app.models import Response
        from responses_app.store.log.records import RequestRecord, ResponseLog

        uid = f"resp_{uuid4().hex}"
        row = Response(uid=uid, project="bench", model=MODEL, thread=uid, created_at=timezone.now())
        content = [{"type": "input_text", "text": "A question of about two hundred tokens. " * 20}]
        log = ResponseLog(row, [{"id": f"msg_in_{uid}", "type": "message", "role": "user", "content": content}])
        log.request = RequestRecord(json.dumps({"model": MODEL}), tuple(range(PROMPT_TOKENS)), MODEL)
        log.worker = self._worker
        return log

    async def _append(self, writer: LogWriter, append: Any) -> None:
        """Append, and wait for the commit. Raises the error of the log writer."""
        done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        began = time.monotonic()
        writer.enqueue(lambda: append, done.set_result, append.route)
        if error := await done:
            raise error
        self.waits.append(time.monotonic() - began)
        self.counts.appends += 1
        self.counts.events += len(append.frames)
        self.counts.event_bytes += sum(len(frame.data) for frame in append.frames)


def _ending(uid: str, last: EventFrame) -> Any:
    from django.utils import timezone

    from responses_app.store.log.records import Ending

    response = json.loads(last.data)["response"]
    items = [{**item, "id": f"{item['type'][:3]}_{uid}"} for item in response["output"]]
    return Ending("completed", timezone.now(), items, response["usage"])


def main() -> None:
    """Run the load of the arguments between two lines of stdin."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("streams", "deltas", "batch"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("seconds", "rate"):
        parser.add_argument(f"--{name}", type=float, required=True)
    options = parser.parse_args()
    django.setup()
    # A pool that two threads open at once is not ready for the second.
    connection.ensure_connection()
    load = WriteLoad(options.deltas, options.batch, options.rate)
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(load.run(options.streams, options.seconds))


if __name__ == "__main__":
    main()
