"""Matrix: does each task with each client on a model of a running server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.client_matrix.clients import MatrixClient
from bench.client_matrix.outcome import TaskResult, judge
from bench.client_matrix.recorder import SETTLE_S, Recorder
from bench.client_matrix.tasks import Task


@dataclass(frozen=True, slots=True)
class MatrixAddress:
    """Address of a server: base URL without `/v1`, and an API key."""

    url: str
    key: str


def run_matrix(
    address: MatrixAddress, model: str, clients: Sequence[MatrixClient], names: Sequence[str] | None, limit_s: float
) -> Iterator[TaskResult]:
    """Do the tasks of `names`, or all, with each client, in turn. `limit_s` is for one task."""
    for client in clients:
        for task in client.tasks:
            if names is None or task.name in names:
                yield run_task(address, model, client, task, limit_s)


def run_task(address: MatrixAddress, model: str, client: MatrixClient, task: Task, limit_s: float) -> TaskResult:
    """Do one task in a temporary folder and judge the outcome. A recorder of its own gets no late answers to an earlier task."""
    with (
        tempfile.TemporaryDirectory(prefix="client-matrix-", ignore_cleanup_errors=True) as folder,
        Recorder(address.url, limit_s).running() as recorder,
    ):
        outcome = client.run(task, model, recorder.url, address.key, Path(folder), limit_s)
        outcome.exchanges = recorder.take(0.0 if outcome.timed_out else SETTLE_S)
        verdict, reason = judge(outcome, task.check, needs_images=task.way == "image")
    return TaskResult(model, client.name, task.name, verdict, reason, outcome.seconds, outcome.tokens)
