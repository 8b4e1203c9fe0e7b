"""System under test with server tools: two web processes, a tape that calls the tools, and an MCP server that counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from responses_app.dialects.harmony.dialect import HarmonyDialect
from responses_app.installation.data_dir import ROOT
from responses_app.runs.execute.calls.problems import UNKNOWN_OUTCOME
from tests.chaos.findings import Findings
from tests.chaos.options import ChaosOptions
from tests.chaos.system.system import System, harmony
from tests.chaos.tool_calls.counting_server import CLOSED, GUARDED, IDEMPOTENT, OUTPUT, SAFE, UNSAFE
from tests.support.server.serve_command import free_port
from tests.support.waiting import eventually

LABEL = "counting"
# Inputs of the two kinds of responses.
PLAIN, APPROVAL = "Please count plain words", "Please count guarded words"
ANSWER = "That was counted."
# Without the full stop, whose token differs before a quotation mark.
UNKNOWN = UNKNOWN_OUTCOME.partition(" and the")[2].rstrip(".")
# Each process reads the tape at its start and uses each line once.
COPIES = 60
PAUSE_S = 0.01
TOOL = {
    "type": "mcp",
    "server_label": LABEL,
    "require_approval": {"always": {"tool_names": [GUARDED]}, "never": {"tool_names": [UNSAFE, SAFE, IDEMPOTENT]}},
}


class ToolSystem(System):
    """System of two web processes with the counting MCP server."""

    def __init__(self, folder: Path, findings: Findings) -> None:
        super().__init__(ChaosOptions(engine="script", web=2, durability="visible"), folder, findings)
        self.counts = folder / "counts"
        self._mcp_port = free_port()
        self._mcp: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start all parts. Raises RuntimeError, PostgresError."""
        self.counts.mkdir()
        self._start_mcp()
        await super().start()

    async def stop(self) -> None:
        """End the web processes and the MCP server."""
        await super().stop()
        if self._mcp is not None:
            self._mcp.kill()
            self._mcp.wait()

    def _start_mcp(self) -> None:
        program = [sys.executable, "-m", "tests.chaos.tool_calls.counting_server", str(self.counts), str(self._mcp_port)]
        self._mcp = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def runs(self, tool: str) -> int:
        """Return how often `tool` has run."""
        file = self.counts / tool
        return len(file.read_text().splitlines()) if file.exists() else 0

    async def wait_for_run(self, tool: str, runs: int) -> None:
        """Wait until `tool` has run more than `runs` times."""
        await eventually(lambda: self.runs(tool) > runs, poll_s=0.0005)

    def close_gate(self) -> None:
        """Have the tools wait."""
        (self.counts / CLOSED).touch()

    def open_gate(self) -> None:
        """Let the tools end."""
        (self.counts / CLOSED).unlink(missing_ok=True)

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings, with the MCP server."""
        servers = {LABEL: {"url": f"http://127.0.0.1:{self._mcp_port}/mcp"}}
        return {**super().settings, "RESPONSES_MCP_SERVERS": json.dumps(servers), "RESPONSES_SEAL_AFTER": "3600"}

    def _engine(self) -> str:
        return f"script://{record(self.folder / 'tape.jsonl')}?tokenizer={harmony()}"


def record(path: Path) -> Path:
    """Write the tape: answers behind results, and calls behind the inputs."""
    encoding = HarmonyDialect().encoding
    final = f"<|channel|>final<|message|>{ANSWER}<|return|>"
    calls = "<|end|><|start|>assistant".join(map(_call, (UNSAFE, SAFE, IDEMPOTENT))) + "<|call|>"
    lines = [(OUTPUT, final), (UNKNOWN, final), (" plain words", calls)]
    lines.append((" guarded words", _call(GUARDED) + "<|call|>"))
    texts = []
    for words, text in lines:
        ids = encoding.encode(text, allowed_special="all")
        chunks = [step for one in ids for step in ({"tokens": [one]}, {"delay": PAUSE_S})]
        texts += [json.dumps({"match": encoding.encode(words), "chunks": chunks})] * COPIES
    path.write_text("\n".join(texts) + "\n")
    return path


def _call(tool: str) -> str:
    return f"<|channel|>commentary to=functions.{LABEL}__{tool} <|constrain|>json<|message|>{{}}"
