"""Client of the load: sends requests, follows streams, resumes, cancels, and records every answer."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote

from tests.chaos.findings import Findings
from tests.chaos.load.cases import Case
from tests.chaos.load.follower import ResponseMissing, StreamFollower
from tests.chaos.load.http import ConnectionBroken, HttpAnswer, HttpClient, pause_before_retry
from tests.chaos.system.processes import WebProcess
from tests.chaos.system.system import System
from tests.chaos.waits import NO_LIMIT, observe, pause

TRIES = 400
POLL_S = 0.5


@dataclass(slots=True)
class ResponseRecord:
    """Record of a response for the proof: its id, the events that its followers saw, and the answers to plain requests."""

    uid: str
    case: Case
    followers: list[StreamFollower] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    cancelled: bool = False
    deleted: bool = False


class ChaosClient:
    """Client of a case; `run` follows the response to the end, and `records` are left for the proof."""

    def __init__(self, case: Case, system: System, http: HttpClient, findings: Findings, seed: int) -> None:
        self.case, self.records = case, list[ResponseRecord]()
        self._system, self._http, self._findings = system, http, findings
        self._chance = Random(f"client {seed} {case.number}")
        self._tried = 0
        self.over = False
        self.conversation = ""

    async def run(self) -> None:
        """Send all requests of the case, from the first request to the last event."""
        more: dict[str, Any] = {}
        if self.case.hangs is not None:
            return await self._hung_up(self.case.hangs)
        if self.case.conversation:
            self.conversation = (await self._plain("POST", "/v1/conversations", {})).json["id"]
            more["conversation"] = self.conversation
        response = await self._respond(self.case.body | more)
        if self.case.conversation and response is not None:
            await self._respond(self.case.body | more | {"input": "And now tell me a long story."})
        if self.case.answers and response is not None and response["status"] == "completed":
            await self._answer(response)

    async def _answer(self, response: dict[str, Any]) -> None:
        """Send a second turn with the outputs of the tool calls."""
        calls = [item for item in response["output"] if item["type"] == "function_call"]
        outputs = [
            {"type": "function_call_output", "call_id": one["call_id"], "output": '{"temperature": 21, "sky": "sunny"}'}
            for one in calls
        ]
        if outputs:
            await self._respond({**self.case.body, "input": outputs, "previous_response_id": response["id"]})

    async def _respond(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """Follow a response to the end; return the snapshot, or None if the response is not stored or the client left."""
        ways = {"stream": self._streamed, "post": self._posted, "poll": self._polled, "resume": self._resumed}
        record = await ways[self.case.way](self._body(body))
        if record is None or record.deleted or not self.case.stored or self.case.quits is not None:
            return None
        snapshot: dict[str, Any] = (await self._plain("GET", f"/v1/responses/{record.uid}")).json
        return snapshot

    def _body(self, body: dict[str, Any]) -> dict[str, Any]:
        way = self.case.way
        return {
            "model": self._system.model,
            "stream": way in ("stream", "resume"),
            "background": way in ("poll", "resume"),
            "stream_options": {"include_obfuscation": self._padded} if way in ("stream", "resume") else None,
            **body,
        }

    @property
    def _padded(self) -> bool:
        return self.case.number % 3 == 0

    def _follower(self) -> StreamFollower:
        follower = StreamFollower(self._system, self._http, self._findings, self._chance, self._padded)
        follower.conversation = self.case.conversation
        return follower

    async def _hung_up(self, seconds: float) -> None:
        """Send a request and disconnect after `seconds`; a response that was started has to end by itself."""
        web = await self._system.pick_process(self._chance)
        self._system.moments.notify("accept", web)
        with suppress(ConnectionBroken, TimeoutError):
            async with asyncio.timeout(seconds):
                await self._http.request(web, "POST", "/v1/responses", self._marked(self._body(self.case.body)))

    async def _streamed(self, body: dict[str, Any]) -> ResponseRecord | None:
        """Read a foreground stream; resume it when its connection breaks, unless the case quits."""
        record, follower = await self._open(body, self.case.quits)
        if record is None or not self.case.stored:
            if not self.case.stored and follower.seen:
                self._findings.count("store: false, ended" if follower.over else "store: false, cut")
            return record
        if not follower.over and self.case.quits is None:
            self._findings.count("streams resumed")
            await self._follow(follower, record.uid)
        return record

    async def _resumed(self, body: dict[str, Any]) -> ResponseRecord | None:
        """Read a background stream, leave it, and resume it; cancel it or follow it several times, as the case says."""
        record, follower = await self._open(body, self.case.cancels or self.case.deletes or self.case.leaves)
        if record is None:
            return None
        if self.case.deletes is not None:
            await self._delete(record)
            return record
        tails = [self._follower() for _ in range(self.case.tails)]
        record.followers += tails
        jobs = [self._follow(one, record.uid) for one in (follower, *tails)]
        if self.case.cancels is not None:
            jobs.append(self._cancel(record, follower.web))
        await asyncio.gather(*jobs)
        return record

    async def _follow(self, follower: StreamFollower, uid: str) -> None:
        try:
            await follower.follow(uid)
        except ResponseMissing:
            self._findings.contradict(uid, "is not found any more", seen=f"{len(follower.seen)} events")

    async def _open(self, body: dict[str, Any], until: int | None) -> tuple[ResponseRecord | None, StreamFollower]:
        """Send a POST for a stream and read the stream; repeat the POST only if no response was started."""
        for _ in range(TRIES):
            follower, web = self._follower(), await self._system.pick_process(self._chance)
            follower.web = web
            self._system.moments.notify("accept", web)
            try:
                async with self._http.stream(web, "POST", "/v1/responses", self._marked(body)) as stream:
                    if stream.status != 200:
                        if await self._again(await stream.refusal()):
                            continue
                        return None, follower
                    self._findings.count("streams opened")
                    await follower.read(stream, until)
            except ConnectionBroken as error:
                follower.broke(error)
            uid = self._uid(follower) or await self._find()
            if uid is not None:
                return self._keep(uid, follower), follower
            if not self.case.stored:
                self._findings.count("store: false, cut")
                return None, follower
            await pause_before_retry()
        self._findings.contradict(f"case {self.case.number}", "was never accepted")
        return None, self._follower()

    async def _posted(self, body: dict[str, Any]) -> ResponseRecord | None:
        """Send a plain POST; without an answer, find the response by its metadata."""
        for _ in range(TRIES):
            web = await self._system.pick_process(self._chance)
            self._system.moments.notify("accept", web)
            try:
                answer = await self._http.request(web, "POST", "/v1/responses", self._marked(body), patience=300)
            except ConnectionBroken:
                self._findings.count("plain requests that broke")
                if self.case.retries:
                    self._findings.count("sent again")
                    continue
            else:
                if answer.status == 200:
                    record = self._keep(answer.json["id"], None)
                    record.answers.append(answer.body)
                    return record
                if await self._find() is None and not await self._again(answer):
                    return None
            uid = await self._find()
            if uid is not None:
                record = self._keep(uid, None)
                await self._poll(record)
                return record
            await pause_before_retry()
        self._findings.contradict(f"case {self.case.number}", "was never accepted")
        return None

    async def _polled(self, body: dict[str, Any]) -> ResponseRecord | None:
        for _ in range(TRIES):
            web = await self._system.pick_process(self._chance)
            self._system.moments.notify("accept", web)
            try:
                answer = await self._http.request(web, "POST", "/v1/responses", self._marked(body))
                uid = answer.json["id"] if answer.status == 200 else None
                if uid is None and not await self._again(answer):
                    return None
            except ConnectionBroken:
                uid = None
            uid = uid or await self._find()
            if uid is not None:
                record = self._keep(uid, None)
                await self._poll(record)
                return record
            await pause_before_retry()
        self._findings.contradict(f"case {self.case.number}", "was never accepted")
        return None

    async def _poll(self, record: ResponseRecord) -> None:
        answer = await observe(
            lambda: self._plain("GET", f"/v1/responses/{record.uid}"),
            lambda answer: answer.status != 200 or answer.json["status"] not in ("queued", "in_progress"),
            limit_s=NO_LIMIT,
            poll_s=POLL_S,
        )
        if answer.status == 200:
            record.answers.append(answer.body)
        else:
            self._findings.contradict(record.uid, f"GET was answered {answer.status}", seen=answer.body)

    async def _cancel(self, record: ResponseRecord, canceller: WebProcess | None) -> None:
        """Cancel through any web process, for odd cases through another than `asked`, until there is an answer."""
        other = canceller if self.case.number % 2 else None
        answer = await self._plain("POST", f"/v1/responses/{record.uid}/cancel", moment="cancel", but=other)
        self._findings.count("cancelled through another process", other is not None)
        if answer.status == 200:
            record.answers.append(answer.body)
            record.cancelled = True
            if answer.json["status"] != "cancelled":
                self._findings.contradict(record.uid, "a cancellation was answered with another status", seen=answer.body)
        elif answer.status == 400:
            self._findings.count("cancelled too late")
        else:
            self._findings.contradict(record.uid, f"a cancellation was answered {answer.status}", seen=answer.body)

    async def _delete(self, record: ResponseRecord) -> None:
        """Delete through any web process, until there is an answer; a request that broke may have deleted it."""
        answer = await self._plain("DELETE", f"/v1/responses/{record.uid}", moment="delete")
        record.deleted = True
        if answer.status not in (200, 404):
            self._findings.contradict(record.uid, f"a deletion was answered {answer.status}", seen=answer.body)

    async def _plain(
        self, method: str, path: str, body: Any = None, moment: str = "", but: WebProcess | None = None
    ) -> HttpAnswer:
        """Repeat an idempotent request through any web process until it is answered; avoid `but` at first. Raises RuntimeError."""
        answer = HttpAnswer(0, b"")
        web = but
        for _ in range(TRIES):
            web = await self._system.pick_process(self._chance, but=web)
            self._system.moments.notify(moment, web)
            try:
                answer = await self._http.request(web, method, path, body, patience=30)
            except ConnectionBroken:
                self._findings.count("plain requests that broke")
            else:
                if answer.status < 500:
                    return answer
                self._findings.count(f"{method} answered {answer.status}")
            await pause_before_retry()
        raise RuntimeError(f"{method} {path} failed {TRIES} times, at last with {answer.status}: {answer.body[:200]!r}")

    async def _again(self, answer: HttpAnswer) -> bool:
        """Return whether the refusal is temporary; report any other refusal as a contradiction."""
        self._findings.count(f"POST answered {answer.status}")
        if answer.status in (429, 500, 503):
            # As Retry-After would have it.
            await pause_before_retry(2.0)
            return True
        self._findings.contradict(f"case {self.case.number}", f"was refused with {answer.status}", seen=answer.body)
        return False

    def _marked(self, body: dict[str, Any]) -> dict[str, Any]:
        """Mark each attempt in its metadata, so that `_find` can find its response."""
        self._tried += 1
        return {**body, "metadata": {"case": str(self.case.number), "try": str(self._tried)}}

    async def _find(self) -> str | None:
        """Find the response that the last attempt started, by its metadata."""
        if not self.case.stored:
            return None
        query = f"{quote('metadata[case]')}={self.case.number}&{quote('metadata[try]')}={self._tried}"
        # It may be on its way into the database still: the process that we asked may be slow, or stand still.
        for delay_s in (0.0, 1.0, 8.0):
            await pause(delay_s)
            data = (await self._plain("GET", f"/v1/responses?{query}")).json["data"]
            if data:
                self._findings.count("found by its metadata")
                return str(data[0]["id"])
        return None

    def _keep(self, uid: str, follower: StreamFollower | None) -> ResponseRecord:
        record = ResponseRecord(uid, self.case, [follower] if follower else [])
        self.records.append(record)
        return record

    def _uid(self, follower: StreamFollower) -> str | None:
        if not follower.seen:
            return None
        follower.uid = json.loads(follower.seen[0].data)["response"]["id"]
        return follower.uid
