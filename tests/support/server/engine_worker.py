"""Engine worker of a demo model, started as by its owner: `manage.py engine`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from responses_app.local.data_dir import ROOT
from tests.support.server.processes import named
from tests.support.server.serve_command import free_port
from tests.support.waiting import wait_until

# An idle machine needs 25 s.
START_LIMIT_S = 400.0


class EngineWorker:
    """Engine worker with a data folder and a port of its own; `url` is the address without parameters."""

    def __init__(self, folder: Path, model: str = "demo-chat") -> None:
        port = free_port()
        self.url, self.log = f"http://127.0.0.1:{port}", folder.with_suffix(".log")
        self.folder = folder / "engines" / model
        environ = os.environ | {"RESPONSES_DATA_DIR": str(folder), "VLLM_CPU_KVCACHE_SPACE": "1"}
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "engine", "--model", model, "--port", str(port)],
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

    def kill_vllm(self) -> None:
        """Kill the server of vLLM, which the worker starts again."""
        os.kill(named(self.process.pid, "engines.vllm.server"), signal.SIGKILL)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)
