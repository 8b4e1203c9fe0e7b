"""Echo application in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from responses_app.installation.data_dir import ROOT
from tests.support import plain_http
from tests.support.server.serve_command import free_port


class Echo:
    """Run tests.support.server.echo_app in a separate process.

    `limits` replace constants of server/http/tcp_limits.py and fields of `TransportLimits`.
    """

    def __init__(self, **limits: float) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "tests.support.server.echo_app", str(self.port)]
        environ = os.environ | {"LIMITS": json.dumps(limits)}
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environ)
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def get(self, path: str) -> dict[str, int]:
        answer: dict[str, int] = plain_http.get(f"http://127.0.0.1:{self.port}{path}", timeout=60).json()
        return answer

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
