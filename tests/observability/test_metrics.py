"""Metrics of a server with two web processes: sums, a killed process, refused requests, the port and the token."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.sync.client import connect

from tests.support import plain_http
from tests.support.server.processes import all_named
from tests.support.server.serve_command import START_LIMIT, Server, free_port
from tests.support.waiting import wait_until

WEB: Final = "server.processes.web_process"
TOKEN: Final = "a-token-of-the-metrics"
PROMTOOL: Final = shutil.which("promtool")
MISSING: Final = "there is no promtool; on Debian: apt-get install -y prometheus"


class MeasuredServer(Server):
    """Server with metrics on a port of their own."""

    metrics_port: int

    @classmethod
    def start(cls, folder: Path, tape: str) -> MeasuredServer:
        port = free_port()
        server = cls(folder, "--engine", tape, "--web", "2", RESPONSES_METRICS_PORT=str(port), RESPONSES_METRICS_TOKEN=TOKEN)
        server.metrics_port = port
        server.ready()
        return server

    @property
    def metrics(self) -> str:
        return plain_http.get(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=60).text

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of the samples of `name` with these labels."""
        families = text_string_to_metric_families(self.metrics)
        samples = [sample for family in families for sample in family.samples if sample.name == name]
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

    def wait_for(self, expected: float, name: str, **labels: str) -> None:
        wait_until(lambda: self.value(name, **labels) == expected, explain=lambda: self.metrics)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tape: str) -> Iterator[MeasuredServer]:
    server = MeasuredServer.start(tmp_path_factory.mktemp("measured") / "data", tape)
    yield server
    server.end()


def test_sum_over_two_processes_is_true_after_one_was_killed(server: MeasuredServer) -> None:
    for _ in range(6):
        assert server.ask().status_code == 200
    created = {"endpoint": "/v1/responses", "code": "200"}
    server.wait_for(6, "verbatim_http_requests_total", **created)
    server.wait_for(6, "verbatim_responses_total", status="completed", model="tape")
    for name in ("time_to_first_token", "time_per_output_token", "duration", "queue"):
        server.wait_for(6, f"verbatim_{name}_seconds_count")
    assert server.value("verbatim_tokens_total", type="output") == 6 * 7
    assert server.value("verbatim_commit_seconds_count") > 6
    server.wait_for(0, "verbatim_in_flight")

    with connect(f"ws://127.0.0.1:{server.port}/v1/responses", additional_headers={"Authorization": f"Bearer {server.key}"}):
        server.wait_for(1, "verbatim_open_websockets")
        server.wait_for(1, "verbatim_http_requests_total", code="101")
        victims = all_named(server.process.pid, WEB)
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        server.wait_for(0, "verbatim_open_websockets")
    assert server.value("verbatim_responses_total") == 6
    wait_until(lambda: len(all_named(server.process.pid, WEB)) == 2, limit_s=START_LIMIT)
    assert server.ask().status_code == 200
    server.wait_for(7, "verbatim_http_requests_total", **created)
    names = {file.name for file in (server.folder / "metrics").glob("*.slot")}
    assert names <= {"0.slot", "1.slot"}


def test_refused_requests_count(server: MeasuredServer) -> None:
    refused = {"endpoint": "/v1/responses", "code": "401"}
    before = server.value("verbatim_http_requests_total", **refused)
    assert plain_http.post(f"{server.url}/v1/responses", json={"model": "tape"}).status_code == 401
    assert plain_http.get(f"{server.url}/v1/responses").status_code == 401
    server.wait_for(before + 2, "verbatim_http_requests_total", **refused)
    assert plain_http.get(f"{server.url}/v1/responses/resp_secret-of-a-user").status_code == 401
    assert plain_http.get(f"{server.url}/no-such-secret-page").status_code == 404
    server.wait_for(1, "verbatim_http_requests_total", endpoint="/v1/responses/{uid}", code="401")
    server.wait_for(1, "verbatim_http_requests_total", endpoint="other", code="404")
    assert "secret" not in server.metrics
    assert server.key not in server.metrics


def test_engines_and_sessions_are_checked_again_and_again(server: MeasuredServer) -> None:
    server.wait_for(1, "verbatim_engine_up", model="tape", engine="local")
    wait_until(lambda: server.value("verbatim_postgres_sessions", state="idle") > 0, explain=lambda: server.metrics)


def test_public_port_needs_the_token(server: MeasuredServer, shared: Server) -> None:
    url = f"{server.url}/metrics"
    assert plain_http.get(url).status_code == 401
    assert plain_http.get(url, headers={"Authorization": "Bearer another-token-of-it"}).status_code == 401
    answer = plain_http.get(url, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert "verbatim_in_flight" in answer.text
    assert plain_http.get(f"{shared.url}/metrics").status_code == 404, "nothing is shown without the settings"


def test_promtool_accepts_the_metrics(server: MeasuredServer) -> None:
    if PROMTOOL is None:
        pytest.skip(MISSING)
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=server.metrics, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("RESPONSES_METRICS_TOKEN", "short", "RESPONSES_METRICS_TOKEN must have at least 16 characters, not 5"),
        ("RESPONSES_METRICS_PORT", "70000", "RESPONSES_METRICS_PORT must be at most 65535, not 70000"),
    ],
)
def test_invalid_setting_ends_the_start_with_a_sentence(
    tmp_path: Path, tape: str, name: str, value: str, sentence: str
) -> None:
    server = Server(tmp_path / "data", "--engine", tape, before=["env", f"{name}={value}"])
    assert server.process.wait(START_LIMIT) == 1
    assert sentence in server.output
    assert "Traceback" not in server.output


def test_metrics_on_the_port_of_the_server_end_the_start_with_a_sentence(tmp_path: Path, tape: str) -> None:
    port = free_port()
    server = Server(tmp_path / "data", "--engine", tape, "--port", str(port), RESPONSES_METRICS_PORT=str(port))
    assert server.process.wait(START_LIMIT) == 1
    assert f"RESPONSES_METRICS_PORT is {port}, the port of the server: choose another port" in server.output


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        *((host, "correct RESPONSES_METRICS_HOST") for host in ("host.invalid", "a..b", "192.0.2.1")),
        ("", "RESPONSES_METRICS_HOST: the address is empty"),
    ],
)
def test_wrong_address_of_the_metrics_ends_the_start_with_its_setting(
    tmp_path: Path, tape: str, host: str, sentence: str
) -> None:
    port = str(free_port())
    server = Server(tmp_path / "data", "--engine", tape, RESPONSES_METRICS_PORT=port, RESPONSES_METRICS_HOST=host)
    assert server.process.wait(START_LIMIT) == 1
    assert sentence in server.output
    assert "Traceback" not in server.output
