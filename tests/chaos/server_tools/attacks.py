"""Attacks on the sandbox through the API of a running server.

Meanwhile another client lists the models and makes short responses, and the time of each request is measured.
"""

from __future__ import annotations

import argparse
import base64
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.chaos.case import ChaosCase
from tests.chaos.findings import Findings
from tests.chaos.server_tools.attack_codes import ATTACKS, SECRET, Attack
from tests.chaos.server_tools.drill import INCLUDE, SETTLE_LIMIT_S, TOOL
from tests.chaos.server_tools.target import SERVER, ServerTarget, wait_until_gone
from tests.support.extraction import documents
from tests.support.waiting import wait_until

RUN_TIMEOUT_S = 3
MAX_OUTPUT = 1_200_000
NEIGHBOR_PAUSE_S = 0.05
NEIGHBOR_LIMIT_MS = 100.0
MIB = 1 << 20
BAD_NAME = "../x.docx"


class AttackDrill:
    """Attacks on a started server, and a neighbor whose requests are timed."""

    def __init__(self, target: ServerTarget, findings: Findings) -> None:
        self._target, self._findings = target, findings
        self.times_ms: dict[str, list[float]] = {"GET /v1/models": [], "short response": []}

    def run(self, numbers: Sequence[int]) -> None:
        """Run the attacks with these numbers, then the hostile files, then check that the server is clean."""
        with self._target.client() as client:
            _respond(client, "Hello")
            with self._neighbor():
                for number in numbers:
                    self._attack(client, number, ATTACKS[number])
                self._upload_bomb(client)
                self._escape_by_name(client)
        self._check_clean()

    def _attack(self, client: httpx2.Client, number: int, attack: Attack) -> None:
        began = time.monotonic()
        answer = _respond(client, f"Please{words(number)}", tools=[TOOL], include=[INCLUDE])
        call = next((item for item in answer.get("output", ()) if item["type"] == "code_interpreter_call"), None)
        if call is None or answer["status"] != "completed":
            self._findings.contradict(attack.name, "the response has no call", seen=answer)
            return
        logs = "".join(output.get("logs", "") for output in call["outputs"] or ())
        self._findings.count("attacks")
        if attack.expected not in logs:
            self._findings.contradict(attack.name, f"'{attack.expected}' is not in the output", seen=logs[-300:])
        if SECRET in logs or self._target.server.key in logs or len(logs) > MAX_OUTPUT:
            self._findings.contradict(attack.name, "a secret or too much is in the output", seen=logs[-300:])
        files = client.get(f"/containers/{call['container_id']}/files").json()["data"]
        for file in files:
            content = client.get(f"/containers/{call['container_id']}/files/{file['id']}/content").content
            if SECRET.encode() in content or b"root:" in content:
                self._findings.contradict(attack.name, "a file of the machine can be downloaded", seen=file)
        client.delete(f"/containers/{call['container_id']}").raise_for_status()
        sys.stdout.write(f"{attack.name}: {time.monotonic() - began:.1f} s\n")
        sys.stdout.flush()

    def _upload_bomb(self, client: httpx2.Client) -> None:
        """Send an archive that grows to 300 MiB as an input file and to a vector store; its name leads out of the folder."""
        bomb = documents.archive(word__document=bytes(300 * MIB))
        data = f"data:application/octet-stream;base64,{base64.b64encode(bomb).decode()}"
        part = {"type": "input_file", "filename": BAD_NAME, "file_data": data}
        answer = _respond(client, [{"role": "user", "content": [part]}])
        if answer.get("error", {}).get("code") != "invalid_file":
            self._findings.contradict("zip bomb as input_file", "is not refused", seen=answer)
        form = {"purpose": "assistants"}
        file = client.post("/files", files={"file": (BAD_NAME, bomb)}, data=form).raise_for_status().json()
        store = client.post("/vector_stores", json={"file_ids": [file["id"]]}).raise_for_status().json()["id"]
        path = f"/vector_stores/{store}/files/{file['id']}"
        wait_until(lambda: client.get(path).json()["status"] != "in_progress", limit_s=SETTLE_LIMIT_S, poll_s=0.2)
        state = client.get(path).json()
        if state["status"] != "failed" or state["last_error"]["code"] != "invalid_file":
            self._findings.contradict("zip bomb in a vector store", "is not refused", seen=state)
        for place in (f"/vector_stores/{store}", f"/files/{file['id']}"):
            client.delete(place).raise_for_status()

    def _escape_by_name(self, client: httpx2.Client) -> None:
        """Upload a file named ../x to a container."""
        container = client.post("/containers", json={"name": "names"}).raise_for_status().json()["id"]
        answer = client.post(f"/containers/{container}/files", files={"file": ("../x", b"escaped")})
        listed = client.get(f"/containers/{container}/files").json()["data"]
        if any(".." in file["path"] for file in listed) or answer.is_server_error:
            self._findings.contradict("file named ../x", "leads out of the work folder", seen=listed or answer.text)
        if [path for path in self._target.data.parent.rglob("x") if path.is_file()]:
            self._findings.contradict("file named ../x", "is outside of the storage")
        client.delete(f"/containers/{container}").raise_for_status()

    def _check_clean(self) -> None:
        inside = self._target.processes("/sandbox/inside/interpreter.py")
        left = wait_until_gone(inside)
        left += wait_until_gone(self._target.kill(SERVER))
        for command in left:
            self._findings.contradict("end", "a process is left", seen=command)
        for name in ("uploads", "files"):
            if stray := [str(path) for path in (self._target.data / name).rglob("[!.]*") if path.is_file()]:
                self._findings.contradict("end", "stray files are in the data folder", seen=stray)
        if Path("/proc/mounts").read_text() != self._target.mounts:
            self._findings.contradict("end", "the mounts have changed")

    @contextmanager
    def _neighbor(self) -> Iterator[None]:
        """Make requests as another client until the block ends."""
        ended = threading.Event()

        def work() -> None:
            with self._target.client() as client:
                while not ended.wait(NEIGHBOR_PAUSE_S):
                    for name, request in (("GET /v1/models", _list_models), ("short response", _say_hello)):
                        began = time.perf_counter()
                        request(client)
                        self.times_ms[name].append((time.perf_counter() - began) * 1e3)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        for name, times in self.times_ms.items():
            middle, late = statistics.median(times), sum(one > NEIGHBOR_LIMIT_MS for one in times)
            figures = (
                f"median {middle:.0f} ms, maximum {max(times):.0f} ms, {late} of {len(times)} over {NEIGHBOR_LIMIT_MS:.0f} ms"
            )
            self._findings.row(f"{name} meanwhile", figures)
            if middle > NEIGHBOR_LIMIT_MS:
                self._findings.contradict(name, f"takes {middle:.0f} ms during attacks")


def words(number: int) -> str:
    """Return the words of the input that has the model write the attack."""
    return f" attack {number}."


def _respond(client: httpx2.Client, text: Any, **more: Any) -> Any:
    return client.post("/responses", json={"model": "tape", "input": text, **more}).json()


def _list_models(client: httpx2.Client) -> None:
    client.get("/models").raise_for_status()


def _say_hello(client: httpx2.Client) -> None:
    client.post("/responses", json={"model": "tape", "input": "Hello"}).raise_for_status()


async def run(options: argparse.Namespace, folder: Path, findings: Findings, _spare: frozenset[int]) -> None:
    """Start the server, run the numbered attacks, and end the server."""
    (folder / "secret.txt").write_text(SECRET)
    codes = {words(number): f"SECRETS = {str(folder)!r}\n{attack.code}" for number, attack in enumerate(ATTACKS)}
    target = ServerTarget(folder, codes, DRILL_SECRET=SECRET, RESPONSES_SANDBOX_RUN_TIMEOUT=str(RUN_TIMEOUT_S))
    try:
        target.start()
        AttackDrill(target, findings).run(options.attacks)
    finally:
        target.server.end()


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--attacks", type=int, nargs="*", default=range(len(ATTACKS)), help=f"numbers below {len(ATTACKS)}")


CASE = ChaosCase("attack the sandbox through the API", declare, run, adopts_orphans=False)
