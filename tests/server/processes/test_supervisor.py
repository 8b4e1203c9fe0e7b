"""bin/serve with several web processes: replacement, rolling restart, and an end that leaves nothing.

Killed supervisors are tested with the starts behind them: tests/server/cli/test_serve.py.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from responses_app.server.bootstrap.progress import Progress
from responses_app.server.cli.args import Options
from responses_app.server.processes import web_process
from responses_app.server.processes.supervisor import Supervisor
from tests.support import plain_http
from tests.support.server.processes import all_named, family, left, named
from tests.support.server.serve_command import END_LIMIT, START_LIMIT, Server
from tests.support.waiting import eventually, wait_until

WEB = "server.processes.web_process"
# A web process that makes the file of the first argument, is ready if the second argument is "ready", and ends at SIGINT.
WEB_PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
open(sys.argv[1], "x").close()
if sys.argv[2] == "ready":
    os.write(int(sys.argv[-1]), b"1")
signal.pause()
"""
BACK_LIMIT = 120.0  # Seconds until a web process is replaced, on a busy machine too.


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, tape: str) -> Iterator[Server]:
    """Run a server that has two web processes after each test."""
    with Server(tmp_path_factory.mktemp("fleet") / "data", "--engine", tape, "--web", "2", "--drain", "3") as server:
        yield server.ready()


def webs(server: Server) -> list[int]:
    return all_named(server.process.pid, WEB)


def answered(server: Server) -> int:
    return server.ask(store=False).status_code


def wait_for_webs(server: Server, gone: set[int], count: int = 2) -> list[int]:
    """Wait until none of `gone` is left and there are `count` web processes; return these."""
    web_ids: list[int] = []

    def are_replaced() -> bool:
        web_ids[:] = webs(server)
        return not gone & set(web_ids) and len(web_ids) == count

    wait_until(are_replaced, limit_s=BACK_LIMIT, poll_s=0.05, explain=lambda: server.output)
    return web_ids


def test_start_prints_the_family_of_a_model_once(fleet: Server) -> None:
    assert fleet.output.count("tape: gpt-oss (reasoning parser openai_gptoss") == 1


def test_start_prints_no_secret_to_a_file(fleet: Server) -> None:
    assert fleet.key not in fleet.output
    assert "/sign-in/" not in fleet.output
    assert "api_key" in fleet.output


class ConstantLoad:
    """Requests in turn, each on a separate connection; `failures` are those without a response."""

    def __init__(self, server: Server) -> None:
        self.server, self.count = server, 0
        self.failures: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                answer = self.server.ask(store=False)
                if answer.status_code != 200:
                    self.failures.append(f"{answer.status_code} {answer.text}")
            except httpx2.HTTPError as error:
                self.failures.append(repr(error))
            self.count += 1

    def __enter__(self) -> ConstantLoad:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def test_killed_web_process_is_replaced_while_the_other_serves(fleet: Server) -> None:
    first, second = webs(fleet)
    os.kill(first, signal.SIGKILL)
    for _ in range(3):
        assert answered(fleet) == 200
    assert second in wait_for_webs(fleet, {first})
    assert re.search(rf"web process \d \(process {first}\) was ended by SIGKILL; it is started again", fleet.output)


def test_requests_wait_when_all_web_processes_are_killed(fleet: Server) -> None:
    victims = webs(fleet)
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    assert answered(fleet) == 200, "the connection waited in the backlog"
    wait_for_webs(fleet, set(victims))


def test_rolling_restart_refuses_no_request_and_finishes_streams(fleet: Server) -> None:
    old = set(webs(fleet))
    body = {"model": "tape", "input": "Hi", "stream": True, "store": False}
    headers = {"Authorization": f"Bearer {fleet.key}"}
    with ConstantLoad(fleet) as load:
        with plain_http.stream("POST", f"{fleet.url}/v1/responses", json=body, headers=headers, timeout=180) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: response.created"
            fleet.process.send_signal(signal.SIGUSR1)
            assert "event: response.completed" in list(lines)
        wait_until(lambda: "all web processes are new" in fleet.output, limit_s=2 * BACK_LIMIT, explain=lambda: fleet.output)
    assert load.failures == []
    assert load.count > 3
    assert len(wait_for_webs(fleet, old)) == 2


def test_killed_postgres_is_restarted(fleet: Server) -> None:
    os.kill(named(fleet.process.pid, "bin/postgres"), signal.SIGKILL)
    wait_until(lambda: answered(fleet) == 200 and "Postgres has died" in fleet.output, limit_s=BACK_LIMIT, poll_s=0.1)
    wait_for_webs(fleet, set())


def test_stream_ends_before_all_processes_stop(fleet: Server) -> None:
    """Stop the server. Must be the last test of the module that needs the fleet."""
    processes = family(fleet.process.pid)
    body = {"model": "tape", "input": "Hi", "stream": True, "store": False}
    headers = {"Authorization": f"Bearer {fleet.key}"}
    with plain_http.stream("POST", f"{fleet.url}/v1/responses", json=body, headers=headers, timeout=180) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: response.created"
        fleet.process.send_signal(signal.SIGINT)
        assert "event: response.completed" in list(lines)
    assert fleet.process.wait(END_LIMIT) == 0
    assert left(processes) == []
    assert fleet.output.rstrip().endswith("Stopped.")
    assert not list((fleet.folder / "run").iterdir())


def test_invalid_setting_of_a_web_process_ends_the_server(tmp_path: Path, tape: str) -> None:
    """The sentences of the other settings are tested without a server: tests/api/test_models.py."""
    server = Server(tmp_path / "data", "--engine", tape, "--web", "2", RESPONSES_ALIASES="x=unknown")
    processes = family(server.process.pid)
    assert server.process.wait(START_LIMIT) == 1
    assert "RESPONSES_ALIASES: 'x=unknown'" in server.output
    assert "Ready" not in server.output
    assert left(processes) == []


@pytest.mark.parametrize(("states", "code"), [(("ready", "starting"), 0), (("starting", "starting"), 130)])
def test_stop_is_normal_if_one_web_process_serves_while_another_one_starts(
    states: tuple[str, str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(number: int, *_: object) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", WEB_PROGRAM, str(tmp_path / f"web-{number}"), states[number - 1]]

    monkeypatch.setenv("RESPONSES_MODELS", "")
    monkeypatch.setattr(Supervisor, "_database", lambda _: "")
    monkeypatch.setattr(web_process, "command", command)

    async def run(listening: socket.socket) -> int:
        supervisor = Supervisor(Options(web=2), tmp_path, None, Progress(io.StringIO()), listening)

        def has_begun() -> bool:
            is_ready = code or (supervisor._webs and supervisor._webs[0].child.ready.done())
            return bool(is_ready) and len(list(tmp_path.glob("web-*"))) == 2

        ended = asyncio.ensure_future(supervisor.run())
        await eventually(has_begun)
        supervisor.stop()
        return await ended

    with socket.socket() as listening:
        assert asyncio.run(run(listening)) == code


@pytest.mark.engine
def test_engine_workers_stay_when_web_processes_go(tmp_path: Path) -> None:
    with Server(tmp_path / "data", "--worker", RESPONSES_ENGINE_WAIT="5") as server:
        server.ready(4 * START_LIMIT)
        engines = family(named(server.process.pid, "server.engine_worker.program"))
        assert len(engines) >= 4, "the worker, its guard, vLLM's server, its core"
        (web,) = webs(server)
        os.kill(web, signal.SIGKILL)
        assert server.ask(model="demo-chat", store=False).status_code == 200
        assert family(named(server.process.pid, "server.engine_worker.program")) >= engines
        # A stopped worker does not restart its engine during the following requests.
        worker = named(server.process.pid, "server.engine_worker.program")
        os.kill(worker, signal.SIGSTOP)
        vllm = family(named(server.process.pid, "engines.socket.server"))
        os.kill(named(server.process.pid, "engines.socket.server"), signal.SIGKILL)
        (web,) = webs(server)
        os.kill(web, signal.SIGKILL)
        models = plain_http.get(f"{server.url}/v1/models", headers={"Authorization": f"Bearer {server.key}"}, timeout=120)
        assert models.status_code == 200, "requests without an engine are served before the engine is back"
        assert server.ask(model="demo-chat", store=False).status_code == 503
        # The end of a start is tested with workers alone: tests/server/processes/test_engine_urls.py.
        os.kill(worker, signal.SIGCONT)
        wait_until(lambda: all_named(server.process.pid, "engines.socket.server"), limit_s=START_LIMIT)
        assert left(vllm) == []
        everything = family(server.process.pid)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(2 * END_LIMIT) == 0
        assert left(everything) == []
