"""bin/serve as a program: a whole server with a scripted engine, in a separate folder."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import httpx2
import pytest

from responses_app.server.cli.model_specs import HARMONY
from tests.support import plain_http
from tests.support.server.processes import all_named, family, left, named
from tests.support.server.serve_command import END_LIMIT, START_LIMIT, EmptyServer, Server
from tests.support.waiting import wait_until

CORE = ("VLLM::EngineCore", "multiprocessing.spawn")  # vLLM's core process, with and without its title.


def text(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    content: str = answer.json()["output"][0]["content"][0]["text"]
    return content


def test_starts_of_a_folder_keep_its_key_and_leave_nothing_when_they_end(tmp_path: Path, tape: str) -> None:
    """Start a server three times: it is stopped, killed with several web processes, and loses the process that serves."""
    # A shell has to quote the folder.
    first: Server = EmptyServer(tmp_path / "my data ü", "--engine", tape)
    server = first
    try:
        stored = check_first_start(first.ready())
        processes = stop_during_a_stream(first)
        assert left(processes) == []
        assert not list((first.folder / "run").iterdir())
        server = Server(first.folder, "--engine", tape, "--web", "2")
        assert server.ready().key == first.key
        headers = {"Authorization": f"Bearer {first.key}"}
        assert plain_http.get(f"{server.url}/v1/responses/{stored}", headers=headers).json()["id"] == stored
        assert "Installing" not in server.output
        processes = family(server.process.pid)
        server.process.kill()
        server.process.wait()
        # The third server may find that the guard of the second server has not finished yet, and waits.
        server = Server(first.folder, "--engine", tape)
        assert text(server.ready().ask()) == "Hello there!"
        assert left(processes) == []
        kill_process_of_server(server)
    finally:
        first.end()
        server.end()
    assert (first.folder / "api_key").stat().st_mode & 0o777 == 0o600
    assert (first.folder / "secret_key").stat().st_mode & 0o777 == 0o600


def check_first_start(server: Server) -> str:
    """Check the answers, the output and the processes of a server. Return the id of a response."""
    assert plain_http.get(f"{server.url}/health").status_code == 200
    answer = server.ask()
    assert text(answer) == "Hello there!"
    models = plain_http.get(f"{server.url}/v1/models", headers={"Authorization": f"Bearer {server.key}"}).json()
    assert [model["id"] for model in models["data"]] == ["tape"]
    assert len(family(server.process.pid)) > 4, "bin/serve, the server, the guard, Postgres and its workers"
    check_output_in_a_file(server)
    return str(answer.json()["id"])


def stop_during_a_stream(server: Server) -> set[tuple[int, str]]:
    """Stop the server while a response streams, and check that the stream ends well. Return the processes of the server."""
    processes = family(server.process.pid)
    headers = {"Authorization": f"Bearer {server.key}"}
    body = {"model": "tape", "input": "Hi", "stream": True}
    with plain_http.stream("POST", f"{server.url}/v1/responses", json=body, headers=headers, timeout=180) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: response.created"
        server.process.send_signal(signal.SIGTERM)
        later_lines = list(lines)
    assert "event: response.completed" in later_lines
    assert later_lines[-2:] == ["data: [DONE]", ""] or later_lines[-1] == "data: [DONE]"
    assert server.process.wait(END_LIMIT) == 0
    assert server.output.rstrip().endswith("Stopped.")
    return processes


def check_output_in_a_file(server: Server) -> None:
    """Check that the output has no secret, and that the printed commands work."""
    output = server.output
    assert server.key not in output
    assert "/sign-in/" not in output
    assert f"in {server.folder}/api_key" in output
    command = next(line for line in output.splitlines() if "manage.py signin" in line).removeprefix("  sign in   ")
    link = run(command)
    assert link.startswith(f"{server.url}/sign-in/")
    assert plain_http.get(link, follow_redirects=True).status_code == 200
    curl = output[output.index("curl ") : output.index("Ctrl-C stops")]
    assert '"status":"completed"' in run(curl).replace(" ", "")


def run(command: str) -> str:
    """Run a command in a shell with a clean environment."""
    environ = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(["sh", "-c", command], env=environ, cwd="/", capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_given_key_is_used(shared: Server) -> None:
    assert shared.key == "sk-my-own-key"
    assert text(shared.ask()) == "Hello there!"
    assert not (shared.folder / "api_key").exists()


def test_start_prints_the_family_of_each_model(shared: Server) -> None:
    line = "tape: gpt-oss (reasoning parser openai_gptoss, tool parser openai), chosen by model_type: gpt_oss"
    assert shared.output.splitlines().count(line) == 1


@pytest.mark.engine
def test_ctrl_c_while_engines_start_leaves_nothing(tmp_path: Path) -> None:
    with Server(tmp_path / "data", "--model", "a=demo-chat", "--model", "b=demo-chat") as server:

        def has_cores() -> bool:
            assert server.process.poll() is None, server.output
            return len(all_named(server.process.pid, *CORE)) >= 2

        wait_until(has_cores, limit_s=4 * START_LIMIT, poll_s=0.1)
        cores = all_named(server.process.pid, *CORE)
        processes = family(server.process.pid)
        assert {pid for pid, _ in processes} >= set(cores)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(4 * END_LIMIT) == 130
        assert left(processes) == []
    assert "Ready" not in server.output
    assert "Traceback" not in server.output


def kill_process_of_server(server: Server) -> None:
    """Kill the process that serves or supervises, and check that the others end."""
    pid = server.process.pid
    processes = family(pid)
    os.kill(named(pid, "responses_app.server.processes.main"), signal.SIGKILL)
    assert server.process.wait(END_LIMIT) != 0
    assert left(processes) == []
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", server.port)) != 0


def kill_with_guard(server: Server) -> None:
    """Kill the guard and bin/serve, and check that the others end."""
    pid = server.process.pid
    processes = family(pid)
    os.kill(named(pid, "guard.py"), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    assert left(processes) == []


def test_start_waits_for_the_end_of_a_stopped_server(tmp_path: Path) -> None:
    """The second server and its guard are killed: nothing is left."""
    slow = tmp_path / "slow.jsonl"
    slow.write_text(json.dumps({"chunks": [{"tokens": [0]}, {"delay": 600}]}) + "\n")
    server = second = Server(tmp_path / "data", "--engine", f"script://{slow}", "--drain", "600")
    try:
        server.ready()
        with plain_http.client(timeout=60) as client:
            body = {"model": "slow", "input": "Wait", "stream": True}
            headers = {"Authorization": f"Bearer {server.key}"}
            with client.stream("POST", f"{server.url}/v1/responses", json=body, headers=headers) as events:
                lines = events.iter_lines()
                next(lines)
                server.process.send_signal(signal.SIGTERM)
                second = Server(server.folder, "--engine", f"script://{slow}")
                wait_until(lambda: "Waiting up to" in second.output, limit_s=START_LIMIT)
                assert second.process.poll() is None
                # The second signal ends the response.
                server.process.send_signal(signal.SIGTERM)
                assert server.process.wait(END_LIMIT) == 0
        kill_with_guard(second.ready())
    finally:
        server.end()
        second.end()


def test_port_in_use_is_reported_before_the_start(tmp_path: Path, tape: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        server = EmptyServer(tmp_path / "data", "--engine", tape, "--port", str(other.getsockname()[1]))
        assert server.process.wait(START_LIMIT) == 1
    assert "another program listens there already; choose another --port" in server.output
    assert not (server.folder / "postgres").exists()


def test_second_server_in_the_same_folder_is_refused(shared: Server, tape: str) -> None:
    second = Server(shared.folder, "--engine", tape)
    assert second.process.wait(START_LIMIT) == 1
    assert "another server" in second.output
    assert plain_http.get(f"{shared.url}/health").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--model", "./nowhere"), "there is no folder ./nowhere"),
        (("--engine", "script:///nowhere.jsonl"), "nowhere.jsonl"),
    ],
)
def test_invalid_model_is_reported(tmp_path: Path, arguments: tuple[str, ...], reason: str) -> None:
    server = Server(tmp_path / "data", *arguments)
    assert server.process.wait(START_LIMIT) == 1
    assert reason in server.output
    assert "Traceback" not in server.output
    assert left(family(server.process.pid)) == []


def test_model_whose_engine_does_not_start_is_named(tmp_path: Path, tape: str) -> None:
    models = (f"near={tape}&tokenizer={HARMONY}", f"far=http://127.0.0.1:9?model=m&tokenizer={HARMONY}")
    server = Server(tmp_path / "data", *(word for model in models for word in ("--model", model)))
    assert server.process.wait(START_LIMIT) == 1
    assert "the engine is away: far: http://127.0.0.1:9: ConnectError" in server.output
    assert left(family(server.process.pid)) == []


def test_invalid_setting_is_reported_before_the_start(tmp_path: Path, tape: str) -> None:
    server = EmptyServer(tmp_path / "data", "--engine", tape, SECRET_KEY="tooshortforus")
    assert server.process.wait(START_LIMIT) == 1
    assert "SECRET_KEY must have at least 32 characters" in server.output
    assert "tooshortforus" not in server.output
    assert "Traceback" not in server.output
    assert not (server.folder / "postgres").exists()


def test_manage_py_finds_the_embedded_postgres(shared: Server) -> None:
    secret = shared.manage("createkey", "mine")
    answer = plain_http.get(f"{shared.url}/v1/models", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 200
