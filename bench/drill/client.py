"""One client of the load: asks, follows, comes back, cancels, and keeps what it was told."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote

from bench.drill.cases import Case
from bench.drill.findings import Findings
from bench.drill.http import Answer, Broken, Wire, patiently
from bench.drill.listener import Gone, Listener
from bench.drill.parts import Web
from bench.drill.system import System

TRIES = 400
POLL = 0.5


@dataclass(slots=True)
class Told:
    """What this client knows of one response: which, what its listeners saw, and what plain requests were answered."""

    uid: str
    case: Case
    listeners: list[Listener] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    cancelled: bool = False
    deleted: bool = False


class Client:
    """Lives through one case. `told` is what it leaves for the proof."""

    def __init__(self, case: Case, system: System, wire: Wire, findings: Findings, seed: int) -> None:
        self.case, self.told = case, list[Told]()
        self._system, self._wire, self._findings = system, wire, findings
        self._chance = Random(f"client {seed} {case.number}")
        self._tried = 0
        self.over = False
        self.conversation = ""

    async def live(self) -> None:
        """From the first request to the last event."""
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
        """The second turn: what the tool has found."""
        calls = [item for item in response["output"] if item["type"] == "function_call"]
        outputs = [
            {"type": "function_call_output", "call_id": one["call_id"], "output": '{"temperature": 21, "sky": "sunny"}'}
            for one in calls
        ]
        if outputs:
            await self._respond({**self.case.body, "input": outputs, "previous_response_id": response["id"]})

    async def _respond(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """One response to its end; its last state, None if it is not kept or was left."""
        ways = {"stream": self._streamed, "post": self._posted, "poll": self._polled, "resume": self._resumed}
        told = await ways[self.case.way](self._body(body))
        if told is None or told.deleted or not self.case.stored or self.case.quits is not None:
            return None
        snapshot: dict[str, Any] = (await self._plain("GET", f"/v1/responses/{told.uid}")).json
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

    def _listener(self) -> Listener:
        listener = Listener(self._system, self._wire, self._findings, self._chance, self._padded)
        listener.conversation = self.case.conversation
        return listener

    async def _hung_up(self, seconds: float) -> None:
        """Ask, and be gone: whatever was begun of it has to end by itself."""
        web = await self._system.door(self._chance)
        self._system.moments.tell("accept", web)
        with suppress(Broken, TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wire.ask(web, "POST", "/v1/responses", self._marked(self._body(self.case.body)))

    async def _streamed(self, body: dict[str, Any]) -> Told | None:
        """A stream of the foreground; the client comes back when its connection breaks, but not if it has quitted."""
        told, listener = await self._open(body, self.case.quits)
        if told is None or not self.case.stored:
            if not self.case.stored and listener.seen:
                self._findings.count("store: false, ended" if listener.over else "store: false, cut")
            return told
        if not listener.over and self.case.quits is None:
            self._findings.count("streams resumed")
            await self._follow(listener, told.uid)
        return told

    async def _resumed(self, body: dict[str, Any]) -> Told | None:
        """A stream of the background that is left and taken up again; and its cancellation, and those who tail it."""
        told, listener = await self._open(body, self.case.cancels or self.case.deletes or self.case.leaves)
        if told is None:
            return None
        if self.case.deletes is not None:
            await self._delete(told)
            return told
        tails = [self._listener() for _ in range(self.case.tails)]
        told.listeners += tails
        jobs = [self._follow(one, told.uid) for one in (listener, *tails)]
        if self.case.cancels is not None:
            jobs.append(self._cancel(told, listener.web))
        await asyncio.gather(*jobs)
        return told

    async def _follow(self, listener: Listener, uid: str) -> None:
        try:
            await listener.follow(uid)
        except Gone:
            self._findings.contradict(uid, "is not found any more", seen=f"{len(listener.seen)} events")

    async def _open(self, body: dict[str, Any], until: int | None) -> tuple[Told | None, Listener]:
        """POST for a stream, and read it as far as it goes. Asked again only where it is sure that nothing was begun."""
        for _ in range(TRIES):
            listener, web = self._listener(), await self._system.door(self._chance)
            listener.web = web
            self._system.moments.tell("accept", web)
            try:
                async with self._wire.stream(web, "POST", "/v1/responses", self._marked(body)) as stream:
                    if stream.status != 200:
                        if await self._again(await stream.refusal()):
                            continue
                        return None, listener
                    self._findings.count("streams opened")
                    await listener.read(stream, until)
            except Broken as error:
                listener.broke(error)
            uid = self._uid(listener) or await self._find()
            if uid is not None:
                return self._keep(uid, listener), listener
            if not self.case.stored:
                self._findings.count("store: false, cut")
                return None, listener
            await patiently()
        self._findings.contradict(f"case {self.case.number}", "was never accepted")
        return None, self._listener()

    async def _posted(self, body: dict[str, Any]) -> Told | None:
        """One plain request; if there is no answer, what was made of it is looked for."""
        for _ in range(TRIES):
            web = await self._system.door(self._chance)
            self._system.moments.tell("accept", web)
            try:
                answer = await self._wire.ask(web, "POST", "/v1/responses", self._marked(body), patience=300)
            except Broken:
                self._findings.count("plain requests that broke")
                if self.case.retries:
                    self._findings.count("sent again")
                    continue
            else:
                if answer.status == 200:
                    told = self._keep(answer.json["id"], None)
                    told.answers.append(answer.body)
                    return told
                if await self._find() is None and not await self._again(answer):
                    return None
            uid = await self._find()
            if uid is not None:
                told = self._keep(uid, None)
                await self._poll(told)
                return told
            await patiently()
        self._findings.contradict(f"case {self.case.number}", "was never accepted")
        return None

    async def _polled(self, body: dict[str, Any]) -> Told | None:
        """Of the background, looked at now and then."""
        for _ in range(TRIES):
            web = await self._system.door(self._chance)
            self._system.moments.tell("accept", web)
            try:
                answer = await self._wire.ask(web, "POST", "/v1/responses", self._marked(body))
                uid = answer.json["id"] if answer.status == 200 else None
                if uid is None and not await self._again(answer):
                    return None
            except Broken:
                uid = None
            uid = uid or await self._find()
            if uid is not None:
                told = self._keep(uid, None)
                await self._poll(told)
                return told
            await patiently()
        self._findings.contradict(f"case {self.case.number}", "was never accepted")
        return None

    async def _poll(self, told: Told) -> None:
        while True:
            answer = await self._plain("GET", f"/v1/responses/{told.uid}")
            if answer.status != 200:
                self._findings.contradict(told.uid, f"GET was answered {answer.status}", seen=answer.body)
                return
            if answer.json["status"] not in ("queued", "in_progress"):
                told.answers.append(answer.body)
                return
            await asyncio.sleep(POLL)

    async def _cancel(self, told: Told, asked: Web | None) -> None:
        """From any process, or certainly from another one than was asked first, until there is an answer."""
        other = asked if self.case.number % 2 else None
        answer = await self._plain("POST", f"/v1/responses/{told.uid}/cancel", moment="cancel", but=other)
        self._findings.count("cancelled through another process", other is not None)
        if answer.status == 200:
            told.answers.append(answer.body)
            told.cancelled = True
            if answer.json["status"] != "cancelled":
                self._findings.contradict(told.uid, "a cancellation was answered with another status", seen=answer.body)
        elif answer.status == 400:
            self._findings.count("cancelled too late")
        else:
            self._findings.contradict(told.uid, f"a cancellation was answered {answer.status}", seen=answer.body)

    async def _delete(self, told: Told) -> None:
        """Through any process, until there is an answer; one that broke may have done it."""
        answer = await self._plain("DELETE", f"/v1/responses/{told.uid}", moment="delete")
        told.deleted = True
        if answer.status not in (200, 404):
            self._findings.contradict(told.uid, f"a deletion was answered {answer.status}", seen=answer.body)

    async def _plain(self, method: str, path: str, body: Any = None, moment: str = "", but: Web | None = None) -> Answer:
        """A request that may be sent as often as needed, through any process, at first another one than `but`."""
        answer = Answer(0, b"")
        web = but
        for _ in range(TRIES):
            web = await self._system.door(self._chance, but=web)
            self._system.moments.tell(moment, web)
            try:
                answer = await self._wire.ask(web, method, path, body, patience=30)
            except Broken:
                self._findings.count("plain requests that broke")
            else:
                if answer.status < 500:
                    return answer
                self._findings.count(f"{method} answered {answer.status}")
            await patiently()
        return answer

    async def _again(self, answer: Answer) -> bool:
        """Whether a refusal is one that passes; any other is a contradiction."""
        self._findings.count(f"POST answered {answer.status}")
        if answer.status in (429, 500, 503):
            # As Retry-After would have it.
            await patiently(2.0)
            return True
        self._findings.contradict(f"case {self.case.number}", f"was refused with {answer.status}", seen=answer.body)
        return False

    def _marked(self, body: dict[str, Any]) -> dict[str, Any]:
        """Every try under a name of its own, by which it can be found."""
        self._tried += 1
        return {**body, "metadata": {"drill": str(self.case.number), "try": str(self._tried)}}

    async def _find(self) -> str | None:
        """The id of what the last try has begun, if it has."""
        if not self.case.stored:
            return None
        query = f"{quote('metadata[drill]')}={self.case.number}&{quote('metadata[try]')}={self._tried}"
        # It may be on its way into the database still: the process that we asked may be slow, or stand still.
        for pause in (0.0, 1.0, 8.0):
            await asyncio.sleep(pause)
            data = (await self._plain("GET", f"/v1/responses?{query}")).json["data"]
            if data:
                self._findings.count("found by its metadata")
                return str(data[0]["id"])
        return None

    def _keep(self, uid: str, listener: Listener | None) -> Told:
        told = Told(uid, self.case, [listener] if listener else [])
        self.told.append(told)
        return told

    def _uid(self, listener: Listener) -> str | None:
        if not listener.seen:
            return None
        listener.uid = json.loads(listener.seen[0].data)["response"]["id"]
        return listener.uid
