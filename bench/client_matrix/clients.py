"""Clients of the matrix: installation, and the command for a task."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from bench.client_matrix.install import CACHE, install_npm, install_pip
from bench.client_matrix.outcome import TaskOutcome
from bench.client_matrix.tasks import CODEX_TASKS, FORECASTS, LIBRARY_TASKS, SCHEMA, Task

DRIVERS = Path(__file__).parent / "drivers"
CODEX_PACKAGE = DRIVERS / "codex" / "package.json"
INSTALL_LIMIT_S = 1800.0
FOREIGN = ("OPENAI_", "CODEX_", "PYTHON", "DJANGO_")
CODEX_SETTINGS = """
model_provider = "matrix"
approval_policy = "never"
sandbox_mode = "{sandbox}"
model_context_window = {context}
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.matrix]
name = "matrix"
base_url = "{url}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
stream_idle_timeout_ms = {idle_ms}
[model_providers.matrix.auth]
command = "cat"
args = ["{key_file}"]
"""


class MatrixClient(ABC):
    """Client of the matrix. `tasks` are the tasks that the client can do."""

    name: str
    tasks: list[Task]

    @abstractmethod
    def install(self) -> None:
        """Install the client, unless an earlier run has. Raises NotInstalled."""

    @abstractmethod
    def run(self, task: Task, model: str, url: str, key: str, folder: Path, limit_s: float) -> TaskOutcome:
        """Do a task in the empty `folder`, with the server at `url`, in at most `limit_s` seconds."""


class Driver(MatrixClient):
    """Client that is a library: a program of `drivers` does the task."""

    tasks = LIBRARY_TASKS

    def __init__(self, name: str) -> None:
        self.name = name
        self.command: list[str] = []

    def run(self, task: Task, model: str, url: str, key: str, folder: Path, limit_s: float) -> TaskOutcome:
        """Do the task in a separate process."""
        prepare(task, folder)
        inputs = {"way": task.way, "prompts": task.prompts, "forecasts": FORECASTS, "image": str(folder / "picture.png")}
        environ = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": key, "MODEL": model, "AI_SDK_LOG_WARNINGS": "false"}
        outcome = TaskOutcome(folder)
        printed = call([*self.command, json.dumps(inputs)], folder, environ, limit_s, outcome)
        for line in printed:
            for name, value in line.items():
                setattr(outcome, name, value)
        return outcome


class AgentsSdk(Driver):
    """OpenAI Agents SDK for Python."""

    def install(self) -> None:
        """Install the SDK in a virtual environment."""
        python = install_pip(DRIVERS / "python" / "requirements.txt", INSTALL_LIMIT_S)
        self.command = [str(python), str(DRIVERS / "python" / "agents_sdk.py")]


class AiSdk(Driver):
    def install(self) -> None:
        """Install the SDK. Node looks for packages above the program, so the program is copied beside the packages."""
        folder = install_npm(DRIVERS / "node" / "package.json", INSTALL_LIMIT_S)
        self.command = ["node", str(shutil.copy(DRIVERS / "node" / "ai_sdk.mjs", folder))]


class Codex(MatrixClient):
    """Codex CLI. `sandbox` is the `sandbox_mode` of the configuration, `context` the context window in tokens.

    Each task has a new CODEX_HOME in the folder `homes`. With a home below the folder for temporary files, Codex has no sandbox.
    """

    name, tasks = "codex", CODEX_TASKS

    def __init__(self, sandbox: str, context: int, homes: Path) -> None:
        self.sandbox, self.context, self.homes = sandbox, context, homes
        self.program = Path()

    def install(self) -> None:
        """Install the package."""
        self.program = install_npm(CODEX_PACKAGE, INSTALL_LIMIT_S) / "node_modules" / ".bin" / "codex"

    def run(self, task: Task, model: str, url: str, key: str, folder: Path, limit_s: float) -> TaskOutcome:
        """Run `codex exec` for each turn."""
        self.homes.mkdir(parents=True, exist_ok=True)
        prepare(task, folder)
        with tempfile.TemporaryDirectory(prefix="codex-home-", dir=self.homes, ignore_cleanup_errors=True) as home:
            return self.run_turns(task, model, url, key, TaskOutcome(folder), Path(home), limit_s)

    def run_turns(
        self, task: Task, model: str, url: str, key: str, outcome: TaskOutcome, home: Path, limit_s: float
    ) -> TaskOutcome:
        """Run the turns of a task, with the configuration in `home`."""
        key_file = home / "key"
        key_file.write_text(key)
        settings = {"url": url, "sandbox": self.sandbox, "context": self.context, "key_file": key_file}
        (home / "config.toml").write_text(CODEX_SETTINGS.format(**settings, idle_ms=int(limit_s * 1000)))
        environ = {"CODEX_HOME": str(home)}
        began = time.monotonic()
        for number, prompt in enumerate(task.prompts):
            command = [str(self.program), "exec", *(["resume", "--last"] if number else []), "-m", model, "--json"]
            command += ["--skip-git-repo-check", *self.options(task, outcome.folder, home), "--", prompt]
            for event in call(command, outcome.folder, environ, began + limit_s - time.monotonic(), outcome):
                add_event(outcome, event)
        outcome.seconds = time.monotonic() - began
        return outcome

    def options(self, task: Task, folder: Path, home: Path) -> list[str]:
        """Return the options of a task with a schema or an image."""
        if task.way == "schema":
            (home / "schema.json").write_text(json.dumps(SCHEMA))
            return ["--output-schema", str(home / "schema.json")]
        return ["--image", str(folder / "picture.png")] if task.way == "image" else []


def add_event(outcome: TaskOutcome, event: dict[str, Any]) -> None:
    """Add an event of `codex exec --json` to the outcome."""
    if event.get("type") == "turn.failed":
        outcome.error = f"codex: {event['error']['message']}"
    elif event.get("type") == "item.completed":
        outcome.items.append(event["item"])
        if event["item"]["type"] == "agent_message":
            outcome.texts.append(event["item"]["text"])


def prepare(task: Task, folder: Path) -> None:
    """Write the files of a task; of the task `image` the picture of a red circle, `picture.png`."""
    for name, content in task.files.items():
        (folder / name).write_text(content)
    if task.way == "image":
        picture = Image.new("RGB", (64, 64), "white")
        ImageDraw.Draw(picture).ellipse((12, 12, 52, 52), fill="red")
        picture.save(folder / "picture.png")


def call(
    command: list[str], folder: Path, environ: Mapping[str, str], limit_s: float, outcome: TaskOutcome
) -> list[dict[str, Any]]:
    """Run a command and return the JSON objects among its lines; its seconds, a timeout and an exit code go into the outcome."""
    began = time.monotonic()
    printed, errors, exit_code = run_command(command, folder, environ, limit_s)
    outcome.seconds = time.monotonic() - began
    if exit_code is None:
        outcome.timed_out = f"timeout: no end within {limit_s:g} s"
    elif exit_code:
        lines = (errors or printed).strip().splitlines() or ["no output"]
        outcome.error = f"exit code {exit_code}: {lines[-1]}"
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{") and line.endswith("}")]


def run_command(command: list[str], folder: Path, environ: Mapping[str, str], limit_s: float) -> tuple[str, str, int | None]:
    """Run a command and return both outputs and the exit code, or None if all of the processes were killed after `limit_s` seconds."""
    base = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**base, "NO_COLOR": "1", **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, errors = process.communicate(timeout=max(limit_s, 0.0))
        return printed, errors, process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, errors = process.communicate()
        return printed, errors, None


def all_clients(sandbox: str = "workspace-write", context: int = 32768, homes: Path = CACHE) -> dict[str, MatrixClient]:
    """Return the clients by name. The parameters configure Codex."""
    clients: list[MatrixClient] = [Codex(sandbox, context, homes), AgentsSdk("agents-sdk"), AiSdk("ai-sdk")]
    return {client.name: client for client in clients}
