"""Engine worker as a program, and with engines that fail.

The ends and restarts of workers are tested in tests/server/processes: those of ready ones where two are, in test_engine_urls.py, and
the end of one that loads its engine in test_supervisor.py.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from responses_app.demo.build import build
from responses_app.installation.data_dir import ROOT
from responses_app.server.engine_worker import program
from responses_app.server.engine_worker.program import FIRST_TRIES, WorkerProgram
from responses_app.server.engine_worker.spec import WorkerSpec
from responses_app.server.engine_worker.vllm_process import VllmFailed

LIMIT = 600.0  # Seconds for a start; an idle machine needs 12 s.
ENVIRON = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "auto"}


class Started:
    def __init__(self, data: Path, *arguments: str) -> None:
        self.log = data.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "engine", *arguments],
                cwd=ROOT,
                env=os.environ | ENVIRON | {"RESPONSES_DATA_DIR": str(data)},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.engine
def test_unknown_vllm_option_is_reported(tmp_path: Path) -> None:
    model = build("demo-chat", tmp_path / "models")
    worker = Started(tmp_path / "data", "--model", f"vllm://{model}?max_model_lem=5", "--name", "tiny")
    try:
        assert worker.process.wait(LIMIT) == 1
        assert "max_model_len" in worker.log.read_text()
    finally:
        worker.end()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--key", ""], "argument --key: the key is empty"),
        (["--key", "clé"], "argument --key: --key may contain letters, digits and signs of ASCII only"),
        (["--host", ""], "argument --host: the address is empty"),
        (["--port", "99999"], "argument --port: '99999' is not a port"),
        (["--port", "8100", "--socket"], "argument --socket: not allowed with argument --port"),
        (["--name", "=x"], "argument --name: '=x' is not a name"),
        (["--name", "a b"], "argument --name: 'a b' is not a name"),
    ],
)
def test_invalid_option_is_refused(arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        program.main(arguments)
    assert refused.value.code == 2
    assert problem in capsys.readouterr().err


class Broken:
    """Engine that becomes ready or not as `lives` has it, and then fails."""

    log = Path(os.devnull)

    def __init__(self, *lives: bool) -> None:
        self.lives = list(lives)

    async def run(self, ready: object) -> None:
        if self.lives.pop(0):
            assert callable(ready)
            ready()
        raise VllmFailed("it died")

    def clean_up(self) -> None:
        """Nothing is left."""


def run(*lives: bool) -> tuple[int | None, int]:
    """Return the exit code of a worker with such an engine, None if it continues, and the number of lives that are left."""
    worker = WorkerProgram(WorkerSpec("m", "m", {}, {}, "h", 1), Path("unused"))
    engine = Broken(*lives)
    worker.engine = engine  # type: ignore[assignment]
    try:
        return asyncio.run(worker._run_server()), len(engine.lives)
    except IndexError:  # The worker started the engine once more.
        return None, 0


def test_engine_that_never_starts_is_given_up(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("responses_app.server.engine_worker.program.PAUSES_S", (0.0,))
    monkeypatch.setattr("responses_app.server.supervision.process_tree.end_descendants", lambda _pid, spare: [])
    assert run(*[False] * 9) == (1, 9 - FIRST_TRIES)
    assert capsys.readouterr().out == ""


def test_engine_that_was_ready_is_never_given_up(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("responses_app.server.engine_worker.program.PAUSES_S", (0.0,))
    monkeypatch.setattr("responses_app.server.supervision.process_tree.end_descendants", lambda _pid, spare: [])
    assert run(True, *[False] * 9) == (None, 0)
    assert capsys.readouterr().out.startswith("http://h:1?model=m"), "the URL is printed once"
