"""Proof over HTTP: every response has a consistent log, and every client saw the bytes of that log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from random import Random
from typing import Any

from responses_app.protocol.conformance import validate
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.reducer import fold
from tests.chaos.findings import Findings
from tests.chaos.load import tape
from tests.chaos.load.client import ChaosClient, ResponseRecord
from tests.chaos.load.http import ConnectionBroken, HttpAnswer, HttpClient, ReceivedBlock
from tests.chaos.system.system import System

ENDED = frozenset({"completed", "incomplete", "failed", "cancelled"})
HONEST = "cannot be continued exactly"
AT_ONCE = 4


class Proof:
    """Proof over HTTP; `run` it when every response has ended."""

    def __init__(self, system: System, http: HttpClient, findings: Findings, clients: Sequence[ChaosClient]) -> None:
        self._system, self._http, self._findings = system, http, findings
        self._chance = Random(0)
        self._conversations = [client.conversation for client in clients if client.conversation]
        self._records: dict[str, list[ResponseRecord]] = {}
        self._cases = {str(client.case.number): client.case for client in clients}
        for client in clients:
            for one in client.records:
                self._records.setdefault(one.uid, []).append(one)

    async def run(self) -> None:
        """Check all responses that the server lists or a client has recorded."""
        listed = await self._listed()
        self._findings.row("responses kept", len(listed))
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(uid: str, listed: dict[str, Any]) -> None:
            async with limit:
                await self._prove(uid, listed)

        await asyncio.gather(*(one(uid, body) for uid, body in listed.items()))
        for conversation in self._conversations:
            await self._conversation(conversation, [body for body in listed.values() if _within(body, conversation)])
        for uid, records in self._records.items():
            if uid not in listed:
                await self._unlisted(uid, records)

    async def _listed(self) -> dict[str, dict[str, Any]]:
        bodies_by_id: dict[str, dict[str, Any]] = {}
        after = ""
        while True:
            page = (await self._get(f"/v1/responses?limit=100&order=asc{after}")).json
            bodies_by_id |= {body["id"]: body for body in page["data"]}
            if not page["has_more"]:
                return bodies_by_id
            after = f"&after={page['last_id']}"

    async def _unlisted(self, uid: str, records: list[ResponseRecord]) -> None:
        """Check that an unlisted response was deleted or not stored, and is answered 404."""
        stored = any(one.case.stored and not one.deleted for one in records)
        status = (await self._get(f"/v1/responses/{uid}")).status
        if stored:
            self._findings.contradict(uid, "was accepted and is not listed", seen=f"GET is answered {status}")
        elif status != 404:
            self._findings.contradict(uid, f"store: false or deleted, and GET is answered {status}")

    async def _conversation(self, uid: str, listed: list[dict[str, Any]]) -> None:
        """Check that a conversation holds the output items of its responses once, in order, and accepts new items."""
        path = f"/v1/conversations/{uid}/items"
        items = [item["id"] for item in (await self._get(f"{path}?limit=100&order=asc")).json["data"]]
        outputs = [item["id"] for body in listed if body["status"] in ("completed", "incomplete") for item in body["output"]]
        output = {item["id"] for body in listed for item in body["output"]}
        if [one for one in items if one in output] != outputs:
            self._findings.contradict(
                uid, "the conversation does not hold the output of its responses", seen=items, log=outputs
            )
        self._findings.count("items of conversations", len(items))
        note = {"type": "message", "role": "user", "content": "Is anybody there?"}
        answer = await self._http.request(self._system.up[0], "POST", path, {"items": [note]})
        if answer.status != 200:
            self._findings.contradict(uid, f"nothing can be added to the conversation: {answer.status}", seen=answer.body)

    async def _prove(self, uid: str, listed: dict[str, Any]) -> None:
        if any(record.deleted for record in self._records.get(uid, ())):
            self._findings.contradict(uid, "was deleted, and is listed")
        got = (await self._get(f"/v1/responses/{uid}")).json
        log = await self._log(uid)
        if not log:
            return
        self._status(uid, got)
        self._numbers(uid, log)
        events = [json.loads(block.data) for block in log]
        for broken in validate(events):
            self._findings.contradict(uid, f"breaks {broken.rule}: {broken.message}", number=broken.number, log=broken.event)
        terminal = events[-1].get("response")
        for name, seen in (("GET", got), ("the list", listed), ("fold", _folded(events))):
            if seen != terminal:
                self._findings.contradict(
                    uid, f"{name} is not the terminal snapshot", seen=_differ(seen, terminal), log=_differ(terminal, seen)
                )
        for record in self._records.get(uid, ()):
            self._seen(record, log, terminal)
        self._compare_text(uid, got)
        self._findings.count("events", len(log))

    def _status(self, uid: str, got: dict[str, Any]) -> None:
        status = got["status"]
        self._findings.count(f"ended {status}")
        if status not in ENDED:
            self._findings.contradict(uid, f"is {status} for ever")
        if status != "failed":
            return
        message = got["error"]["message"]
        self._findings.failures[message] += 1
        case = self._cases.get(got["metadata"].get("case", ""))
        if HONEST not in message or case is None or not case.chancy:
            self._findings.contradict(uid, f"has failed ({case.kind if case else 'of no case'})", seen=message)

    def _numbers(self, uid: str, log: list[ReceivedBlock]) -> None:
        for due, block in enumerate(log):
            if block.number != due:
                self._findings.contradict(
                    uid, f"the log has number {block.number} where {due} is due", number=due, log=block.data
                )
                break
        ends = [block.number for block in log if block.terminal]
        if ends != [log[-1].number]:
            self._findings.contradict(uid, f"terminal events at {ends} of {len(log)}")

    def _seen(self, record: ResponseRecord, log: list[ReceivedBlock], terminal: dict[str, Any]) -> None:
        for follower in record.followers:
            self._findings.count("events seen by clients", len(follower.seen))
            for block in follower.seen:
                assert block.number is not None
                if block.number >= len(log) or log[block.number].data != block.data:
                    there = log[block.number].data if block.number < len(log) else "nothing"
                    self._findings.contradict(
                        record.uid, "a client has seen something else", number=block.number, seen=block.data, log=there
                    )
                    break
        for answer in record.answers:
            if (body := json.loads(answer)) != terminal:
                self._findings.contradict(
                    record.uid,
                    "a client was answered something else",
                    seen=_differ(body, terminal),
                    log=_differ(terminal, body),
                )
        if record.cancelled and terminal["status"] != "cancelled":
            self._findings.contradict(record.uid, "was cancelled, and is not", log=terminal["status"])

    def _compare_text(self, uid: str, got: dict[str, Any]) -> None:
        """Compare the text with the tape: after any number of takeovers it is complete and repeats nothing."""
        case = self._cases.get(got["metadata"].get("case", ""))
        if self._system.options.engine != "script" or case is None or case.conversation or got["status"] == "failed":
            return
        whole = tape.expected(str(case.body["input"]))
        text = "".join(part["text"] for item in got["output"] if item["type"] == "message" for part in item["content"])
        if whole is None:
            return
        if text != whole if got["status"] == "completed" else not whole.startswith(text):
            self._findings.contradict(uid, f"{got['status']}, and the text is not that of the tape", seen=text, log=whole)

    async def _log(self, uid: str) -> list[ReceivedBlock]:
        """Replay the log through two web processes and compare."""
        one, other = await self._replay(uid, 0), await self._replay(uid, 1)
        if one != other:
            at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
            self._findings.contradict(
                uid, "two processes replay it differently", number=at, seen=one[at : at + 1], log=other[at : at + 1]
            )
        return one

    async def _replay(self, uid: str, which: int) -> list[ReceivedBlock]:
        web = self._system.up[(hash(uid) + which) % len(self._system.up)]
        try:
            async with self._http.stream(web, "GET", f"/v1/responses/{uid}?stream=true&include_obfuscation=false") as stream:
                blocks = [block async for block in stream.blocks()]
        except (ConnectionBroken, ValueError) as error:
            self._findings.contradict(uid, f"{web.name} does not replay it", seen=error)
            return []
        if not blocks or blocks[-1].number is not None:
            self._findings.contradict(uid, f"{web.name} ends its replay without [DONE]")
            return blocks
        return blocks[:-1]

    async def _get(self, path: str) -> HttpAnswer:
        return await self._http.request(self._chance.choice(self._system.up), "GET", path)


def _within(body: dict[str, Any], conversation: str) -> bool:
    return (body.get("conversation") or {}).get("id") == conversation


def _folded(events: list[dict[str, Any]]) -> Any:
    """Reduce the events; return the snapshot, or the error message."""
    try:
        return fold(events)
    except ProtocolError as error:
        return f"{error}"


def _differ(one: Any, other: Any) -> str:
    """Return the members of `one` that differ from those of `other`."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return str(one)
    return json.dumps({name: value for name, value in one.items() if other.get(name, ...) != value})
