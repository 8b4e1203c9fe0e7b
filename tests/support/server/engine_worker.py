"""Engine worker of a demo model, started as by its owner: `manage.py engine`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from responses_app.installation.data_dir import ROOT
from tests.support.server.processes import family, named
from tests.support.server.serve_command import free_port
from tests.support.waiting import wait_until

# An idle machine needs 25 s.
START_LIMIT_S = 400.0


class EngineWorker:
    """Engine worker with a data folder and a port of its own; `url` is the address with its key, without parameters."""

    def __init__(self, folder: Path, model: str = "demo-chat", **variables: str) -> None:
        port = free_port()
        self.url, self.log = f"http://:s3cret@127.0.0.1:{port}", folder.with_suffix(".log")
        self.folder = folder / "engines" / model
        environ = os.environ | {"RESPONSES_DATA_DIR": str(folder), "VLLM_CPU_KVCACHE_SPACE": "1"} | variables
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "engine", "--model", model, "--port", str(port), "--key", "s3cret"],
                cwd=ROOT,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def ready(self) -> EngineWorker:
        """Wait until the worker has printed its engine URL."""

        def is_ready() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return f"\n{self.url}?" in self.log.read_text()

        wait_until(is_ready, limit_s=START_LIMIT_S, poll_s=0.2, explain=self.log.read_text)
        return self

    def kill_core(self) -> set[tuple[int, str]]:
        """Kill the process of vLLM that generates; return the processes that end with it, before the worker starts new ones."""
        processes = family(named(self.process.pid, "engines.vllm.server"))
        os.kill(named(self.process.pid, "VLLM::EngineCore"), signal.SIGKILL)
        return processes

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)
