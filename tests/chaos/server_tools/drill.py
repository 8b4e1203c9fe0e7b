"""Drill: each victim is killed during a run of code, an upload and an ingestion, and the state afterwards is checked."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import httpx2

from responses_app.protocol.conformance import validate
from responses_app.protocol.reducer import fold
from responses_app.runs.execute.calls.problems import UNKNOWN_OUTCOME
from tests.chaos.findings import Findings
from tests.chaos.server_tools.target import RUNNER, SERVER, WEB, ServerTarget, wait_until_gone
from tests.support.waiting import WaitTimeout, wait_until

CODE, UPLOAD, INGESTION = "run of code", "upload", "ingestion"
CASES = [(activity, victim) for activity in (CODE, UPLOAD, INGESTION) for victim in (WEB, RUNNER, SERVER)]
WORDS = " wait in code"
CODES = {WORDS: "import signal\nprint('begins')\nsignal.pause()"}
LOST_SANDBOX = "the sandbox ended during the run"
TOOL = {"type": "code_interpreter", "container": {"type": "auto"}}
INCLUDE = "code_interpreter_call.outputs"
MIB = 1 << 20
SETTLE_LIMIT_S, INGESTION_LIMIT_S = 60.0, 180.0
# Text of an ingestion of some seconds.
LINES = 60_000
BOUNDARY = "drill-boundary"


class ServerToolDrill:
    """Drill over a started server. Uploads have `megabytes` MiB."""

    def __init__(self, target: ServerTarget, findings: Findings, megabytes: int) -> None:
        self._target, self._findings, self._megabytes = target, findings, megabytes
        # SHA-256 of each acknowledged file.
        self._acknowledged: dict[str, str] = {}
        self._text = "".join(
            f"Line {number} of the file, with a word of its own: w{number * 7919}.\n" for number in range(LINES)
        )

    def run(self, activity: str, victim: str) -> None:
        """Kill `victim` during `activity`, and check the state."""
        began = time.monotonic()
        {CODE: self._code, UPLOAD: self._upload, INGESTION: self._ingest}[activity](victim)
        self._check_files(f"{activity}, {victim}")
        self._findings.row(f"{activity}, {victim} killed", f"{time.monotonic() - began:.1f} s until all was checked")

    def end(self) -> None:
        """Kill the server, and check that no process and no mount is left."""
        self._check_gone("end", self._target.kill(SERVER))

    def _kill(self, name: str, victim: str) -> None:
        ended = self._target.kill(victim)
        self._findings.count(f"processes that had to end with the {victim}", len(ended))
        self._check_gone(name, ended)

    def _check_gone(self, name: str, ended: Sequence[Any]) -> None:
        for command in wait_until_gone(ended):
            self._findings.contradict(name, "a process is left", seen=command)
        if self._mounts() != self._target.mounts:
            self._findings.contradict(name, "the mounts have changed", seen=self._mounts(), log=self._target.mounts)

    def _mounts(self) -> str:
        with open("/proc/mounts") as file:
            return file.read()

    def _code(self, victim: str) -> None:
        name = f"{CODE}, {victim}"
        body = {"model": "tape", "input": f"Please{WORDS}", "tools": [TOOL], "include": [INCLUDE], "stream": True}
        seen: list[dict[str, Any]] = []
        with (
            suppress(httpx2.HTTPError),
            self._target.client() as client,
            client.stream("POST", "/responses", json=body) as response,
        ):
            for event in _events(response):
                seen.append(event)
                if event["type"] == "response.code_interpreter_call.interpreting":
                    self._kill(name, victim)
        self._target.recover(victim)
        uid = seen[0]["response"]["id"]
        with self._target.client() as client:
            with client.stream("GET", f"/responses/{uid}", params={"stream": "true", "include[]": INCLUDE}) as response:
                log = list(_events(response))
            got = client.get(f"/responses/{uid}", params={"include[]": INCLUDE}).json()
        self._check_log(name, seen, log, got)
        self._check_call(name, LOST_SANDBOX if victim == RUNNER else UNKNOWN_OUTCOME, got)

    def _check_log(self, name: str, seen: Sequence[dict[str, Any]], log: Sequence[dict[str, Any]], got: dict[str, Any]) -> None:
        for broken in validate(log):
            self._findings.contradict(name, f"breaks {broken.rule}: {broken.message}", number=broken.number)
        if list(seen) != list(log[: len(seen)]):
            self._findings.contradict(name, "the client has seen something else", seen=seen[-1], log=log[len(seen) - 1])
        if not fold(log) == log[-1].get("response") == got:
            self._findings.contradict(name, "stream, terminal snapshot and GET differ", seen=got, log=log[-1])
        self._findings.count("events of all logs", len(log))

    def _check_call(self, name: str, reason: str, response: dict[str, Any]) -> None:
        calls = [item for item in response["output"] if item["type"] == "code_interpreter_call"]
        if response["status"] != "completed" or len(calls) != 1 or response["output"][-1]["type"] != "message":
            self._findings.contradict(name, f"the response is {response['status']} with {len(calls)} calls", seen=response)
        for item in calls:
            logs = "".join(output["logs"] for output in item["outputs"] or ())
            if item["status"] != "failed" or reason not in logs:
                self._findings.contradict(name, f"the call is {item['status']}", seen=logs, log=reason)

    def _upload(self, victim: str) -> None:
        name = f"{UPLOAD}, {victim}"
        self._put(1)
        with suppress(httpx2.HTTPError):
            self._put(self._megabytes, lambda: self._kill(name, victim))
            self._findings.count(f"uploads that were acknowledged in spite of the end of the {victim}")
        self._target.recover(victim)

    def _put(self, megabytes: int, at_half: Callable[[], None] = lambda: None) -> None:
        """Upload a file, and remember it once the server has acknowledged it."""
        digest, chunk = hashlib.sha256(), bytes([megabytes % 251]) * MIB
        head = (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--{BOUNDARY}\r\n'
            'Content-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
        ).encode()
        tail = f"\r\n--{BOUNDARY}--\r\n".encode()

        def form() -> Iterator[bytes]:
            yield head
            for number in range(megabytes):
                if number == megabytes // 2:
                    at_half()
                digest.update(chunk)
                yield chunk
            yield tail

        headers = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
        headers["content-length"] = str(len(head) + megabytes * MIB + len(tail))
        with self._target.client() as client:
            answer = client.post("/files", content=form(), headers=headers).raise_for_status().json()
        self._acknowledged[answer["id"]] = digest.hexdigest()

    def _ingest(self, victim: str) -> None:
        name = f"{INGESTION}, {victim}"
        with self._target.client() as client:
            data = self._text.encode()
            file = client.post("/files", files={"file": ("a.txt", data)}, data={"purpose": "assistants"}).raise_for_status()
            uid = file.json()["id"]
            self._acknowledged[uid] = hashlib.sha256(data).hexdigest()
            reference = self._add(client, uid)
            stored_content = self._content(client, reference, uid)
            store = self._add(client, uid)
            wait_until(lambda: self._is_started(client, victim), limit_s=SETTLE_LIMIT_S, poll_s=0.01)
            state = client.get(f"/vector_stores/{store}/files/{uid}").json()["status"]
            self._findings.count(f"{name}: {state} at the kill")
            with suppress(httpx2.HTTPError):
                self._kill(name, victim)
        self._target.recover(victim)
        with self._target.client() as client:
            if self._content(client, store, uid) != stored_content:
                self._findings.contradict(name, "the chunks differ from those of an ingestion without a kill")
            counts = client.get(f"/vector_stores/{store}").json()["file_counts"]
            if (counts["completed"], counts["total"]) != (1, 1):
                self._findings.contradict(name, "the file is not there once", seen=counts)

    def _is_started(self, client: httpx2.Client, victim: str) -> bool:
        """Return True if there is something to kill: the runner starts with the first file."""
        del client
        return victim != RUNNER or bool(self._target.processes("responses_app.sandbox.runner.program"))

    def _add(self, client: httpx2.Client, uid: str) -> str:
        """Return a new store that ingests the file."""
        return str(client.post("/vector_stores", json={"file_ids": [uid]}).raise_for_status().json()["id"])

    def _content(self, client: httpx2.Client, store: str, uid: str) -> Any:
        """Wait for the ingestion, and return the text of all chunks."""
        path = f"/vector_stores/{store}/files/{uid}"
        wait_until(lambda: client.get(path).json()["status"] != "in_progress", limit_s=INGESTION_LIMIT_S, poll_s=0.2)
        state = client.get(path).json()
        if state["status"] != "completed":
            self._findings.contradict(store, f"the ingestion is {state['status']}", seen=json.dumps(state))
        return client.get(f"{path}/content").json()["data"]

    def _check_files(self, name: str) -> None:
        """Check that acknowledged files are whole, and that the data folder has no other."""
        with self._target.client() as client:
            listed = {file["id"] for file in client.get("/files", params={"limit": 10_000}).json()["data"]}
            if listed != self._acknowledged.keys():
                self._findings.contradict(
                    name, "the files differ from the acknowledged ones", seen=listed, log=self._acknowledged
                )
            for uid in listed & self._acknowledged.keys():
                digest = hashlib.sha256()
                with client.stream("GET", f"/files/{uid}/content") as response:
                    for chunk in response.iter_bytes():
                        digest.update(chunk)
                if digest.hexdigest() != self._acknowledged[uid]:
                    self._findings.contradict(name, f"the content of {uid} has changed")
        with suppress(WaitTimeout):
            wait_until(lambda: not self._stray(len(listed)), limit_s=SETTLE_LIMIT_S, poll_s=0.2)
        if stray := self._stray(len(listed)):
            self._findings.contradict(name, "stray files are in the data folder", seen=stray)

    def _stray(self, count: int) -> list[str]:
        """Return the paths of collected uploads, and of stored files if there are not `count` of them."""
        uploads = [str(path) for path in (self._target.data / "uploads").rglob("*") if path.is_file()]
        stored = [str(path) for path in (self._target.data / "files").rglob("[!.]*") if path.is_file()]
        return uploads + (stored if len(stored) != count else [])


def _events(response: httpx2.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        if line.startswith("data: {"):
            event = json.loads(line[6:])
            event.pop("obfuscation", None)
            yield event
