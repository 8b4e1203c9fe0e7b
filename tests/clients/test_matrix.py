"""Client matrix on recordings: right answers pass, and wrong answers fail with the reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.client_matrix.clients import MatrixClient, all_clients
from bench.client_matrix.install import NotInstalled
from bench.client_matrix.matrix import MatrixAddress, run_matrix
from bench.client_matrix.recording import NAME, write_recording
from bench.client_matrix.tasks import ANSWER, LIBRARY_TASKS
from tests.support.clients.drive import LIMIT_S, give_up
from tests.support.server.serve_command import Server

WRONG = [replace(task, recording=["I do not know."]) for task in LIBRARY_TASKS if task.name in ("answer", "call")]
TASKS = {
    "codex": ["answer", "resume", "patch", "command"],
    "agents-sdk": ["memory", "call", "parallel", "schema", "stream"],
    "ai-sdk": ["memory", "call", "parallel", "schema", "stream"],
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MatrixAddress]:
    """Serve the recording of right answers, and a recording of wrong answers."""
    folder = tmp_path_factory.mktemp("matrix")
    models = [write_recording(folder), write_recording(folder, WRONG, "wrong")]
    arguments = [word for model in models for word in ("--model", model)]
    with Server(folder / "data", *arguments, RESPONSES_API_KEY="sk-matrix") as server:
        server.ready()
        yield MatrixAddress(server.url, server.key)


def installed_client(name: str, homes: Path) -> MatrixClient:
    """Install a client, or skip the test; in continuous integration (`CI=true`) the test fails.

    Codex runs without its sandbox, which a container may not allow.
    """
    client = all_clients("danger-full-access", homes=homes)[name]
    try:
        client.install()
    except NotInstalled as reason:
        give_up(f"no {name}: {reason}", os.environ)
    return client


@pytest.mark.parametrize("name", TASKS)
def test_matrix_passes_with_right_answers(name: str, address: MatrixAddress, tmp_path: Path) -> None:
    results = list(run_matrix(address, NAME, [installed_client(name, tmp_path)], TASKS[name], LIMIT_S))
    assert [(result.task, result.verdict, result.reason) for result in results] == [(task, "pass", "") for task in TASKS[name]]
    assert all(result.tokens[1] > 0 for result in results)


def test_matrix_names_the_reason_of_a_failure(address: MatrixAddress, tmp_path: Path) -> None:
    client = installed_client("agents-sdk", tmp_path)
    results = run_matrix(address, "wrong", [client], ["answer", "call"], LIMIT_S)
    assert [(result.verdict, result.reason) for result in results] == [
        ("fail", "the answer lacks '42': 'I do not know.'"),
        ("fail", "no call of get_weather: 'I do not know.'"),
    ]


def test_matrix_ends_a_client_at_the_limit(address: MatrixAddress, tmp_path: Path) -> None:
    client = installed_client("agents-sdk", tmp_path)
    (result,) = run_matrix(address, NAME, [client], [ANSWER.name], 0.01)
    assert (result.verdict, result.reason) == ("fail", "timeout: no end within 0.01 s")
