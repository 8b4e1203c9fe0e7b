"""Whole server whose processes are killed: web process, runner of the sandbox, or all by the end of the first process."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil

from responses_app.dialects.harmony.dialect import HarmonyDialect
from responses_app.installation.data_dir import ROOT
from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

WEB, RUNNER, SERVER = "web process", "runner", "server"
MARKS = {WEB: "responses_app.server.processes.web_process", RUNNER: "responses_app.sandbox.runner.program"}
GONE_LIMIT_S, UP_LIMIT_S, REQUEST_LIMIT_S = 30.0, 120.0, 60.0
FINAL = "<|channel|>final<|message|>Done.<|return|>"


class ServerTarget:
    """Server in `folder` that can be started again. `codes` maps words of the input to the code that the model writes."""

    def __init__(self, folder: Path, codes: Mapping[str, str], **environ: str) -> None:
        self.folder, self._environ = folder, environ
        self._tape = record(folder / "tape.jsonl", codes)
        self.data = folder / "data"
        self.mounts = Path("/proc/mounts").read_text()
        self.server: Server

    def start(self) -> None:
        """Start the server, again on the same data after an end."""
        engine = f"script://{self._tape}?loop=1"
        environ = {"RESPONSES_SANDBOX_PACKAGES": "off", **self._environ}
        self.server = Server(self.data, "--worker", "--engine", engine, root=ROOT, before=(), **environ)
        self.server.ready()

    def client(self) -> httpx2.Client:
        """Return a client of the API."""
        headers = {"Authorization": f"Bearer {self.server.key}"}
        return plain_http.client(base_url=f"{self.server.url}/v1", headers=headers, timeout=REQUEST_LIMIT_S)

    def processes(self, mark: str = "") -> list[psutil.Process]:
        """Return the processes of the server whose command has `mark`."""
        parent = psutil.Process(self.server.process.pid)
        return [process for process in (parent, *parent.children(recursive=True)) if mark in _command(process)]

    def kill(self, victim: str) -> Sequence[psutil.Process]:
        """Kill the victim. Return the processes that must end with the victim."""
        if victim == SERVER:
            ended = self.processes()
            self.server.process.kill()
            self.server.process.wait()
            return ended
        ended = self.processes(MARKS[victim])
        if victim == RUNNER:
            ended = [below for process in ended for below in (process, *process.children(recursive=True))]
        for process in ended:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        return ended

    def recover(self, victim: str) -> None:
        """Start the server if the server was killed, and wait until the API answers."""
        if victim == SERVER:
            self.start()
        with self.client() as client:
            wait_until(lambda: _is_up(client), limit_s=UP_LIMIT_S, poll_s=0.1)


def wait_until_gone(processes: Sequence[psutil.Process]) -> list[str]:
    """Wait for the end of `processes`. Return the commands of those that are left."""
    with suppress(AssertionError, TimeoutError):
        wait_until(lambda: not any(map(is_alive, processes)), limit_s=GONE_LIMIT_S)
    return [_command(process) for process in processes if is_alive(process)]


def is_alive(process: psutil.Process) -> bool:
    """Return True unless the process has ended."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def record(path: Path, codes: Mapping[str, str]) -> Path:
    """Write a tape: an answer behind a result and behind other inputs, and the code behind its words."""
    encoding = HarmonyDialect().encoding
    calls = [(words, f"<|channel|>analysis to=python code<|message|>{code}<|call|>") for words, code in codes.items()]
    lines = [("<|start|>python", FINAL), *calls, ("", FINAL)]
    recordings = [
        {"match": encoding.encode(words, allowed_special="all")} | {"chunks": [{"tokens": [token]} for token in _tokens(text)]}
        for words, text in lines
    ]
    path.write_text("".join(f"{json.dumps(one if one['match'] else {'chunks': one['chunks']})}\n" for one in recordings))
    return path


def _tokens(text: str) -> Sequence[int]:
    tokens: Sequence[int] = HarmonyDialect().encoding.encode(text, allowed_special="all")
    return tokens


def _is_up(client: httpx2.Client) -> bool:
    try:
        return client.get("/models").status_code == httpx2.codes.OK
    except httpx2.HTTPError:
        return False


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
