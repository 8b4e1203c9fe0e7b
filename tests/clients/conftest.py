"""Drivers of clients: a server with a tape for each client, and installations of the clients."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bench.client_matrix import install
from bench.client_matrix.clients import CODEX_PACKAGE
from tests.support.clients import tapes
from tests.support.clients.drive import LIMIT_S, Drive, give_up
from tests.support.server.serve_command import Server
from tests.support.web_search.pages_folder import write_pages

HERE = Path(__file__).parent
PIP_GROUPS = ("python", "python_formats", "older", "llm", "aider")
# Variables of the environment that clients would read.
FOREIGN = ("OPENAI_", "ANTHROPIC_", "CLAUDE", "PYTHON", "DJANGO_")
QUIET = {
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "NO_COLOR": "1",
    "AI_SDK_LOG_WARNINGS": "false",
}


@pytest.fixture(scope="session")
def installing() -> Iterator[dict[str, Future[Path]]]:
    """All installations, under way."""
    # More at once take longer each, up to the limit of an installation.
    with ThreadPoolExecutor(3) as pool:
        packages = {
            "codex": CODEX_PACKAGE,
            **{group: HERE / group / "package.json" for group in ("node", "opencode", "programs")},
        }
        requirements = {group: HERE / group / "requirements.txt" for group in PIP_GROUPS}
        yield {
            **{group: pool.submit(install.install_npm, manifest) for group, manifest in packages.items()},
            **{group: pool.submit(install.install_pip, manifest) for group, manifest in requirements.items()},
        }


@pytest.fixture(scope="session")
def installed(installing: dict[str, Future[Path]]) -> Callable[[str], Path]:
    """Return a function that returns the folder or the Python of a group of clients.

    If the installation failed, the test is skipped; in continuous integration (`CI=true`) the test fails.
    """

    def find(group: str) -> Path:
        try:
            return installing[group].result()
        except install.NotInstalled as reason:
            return give_up(f"no {group} clients: {reason}", os.environ)

    return find


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Server with a model for each client, started as by a user."""
    with _serving(tmp_path_factory.mktemp("clients"), tapes.TAPES) as server:
        yield server


@pytest.fixture(scope="session")
def tool_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a sandbox and a search service, with a model for each client that uses these."""
    from responses_app.sandbox.launch import packages
    from tests.support.clients import server_tools_tapes
    from tests.support.sandbox.runner import PACKAGES, runner

    with suppress(packages.PackagesMissing):
        packages.install(PACKAGES)
    folder = tmp_path_factory.mktemp("server-tools")
    pages = write_pages(folder / "pages")
    with runner(folder, with_packages=True) as sandbox:
        services = {"RESPONSES_SANDBOX_URL": sandbox.url, "RESPONSES_WEB_SEARCH": f"folder://{pages}"}
        with _serving(folder, server_tools_tapes.TAPES, **services) as server:
            yield server


@contextmanager
def _serving(folder: Path, lines: Mapping[str, Sequence[tapes.Line]], **environ: Any) -> Iterator[Server]:
    from openai_harmony import load_harmony_encoding

    from responses_app.server.cli.model_specs import HARMONY

    models = tapes.record(folder, load_harmony_encoding("HarmonyGptOss"), lines)
    arguments = [word for model in models for word in ("--model", f"{model}?tokenizer={HARMONY}")]
    with Server(folder / "data", *arguments, RESPONSES_API_KEY="sk-clients", **environ) as server:
        yield server.ready()


@pytest.fixture
def environ(server: Server) -> dict[str, str]:
    """Return the environment of a client."""
    return _environ(server)


def _environ(server: Server) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**inherited, **QUIET, "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": server.key, "SERVER_URL": server.url}


@pytest.fixture
def node(installed: Callable[[str], Path], server: Server, environ: dict[str, str]) -> Drive:
    """Runs a driver with Node."""
    return _driving_node(installed, server, environ)


@pytest.fixture
def tool_node(installed: Callable[[str], Path], tool_server: Server) -> Drive:
    """Runs a driver with Node, on the server with a sandbox and a search service."""
    return _driving_node(installed, tool_server, _environ(tool_server))


@pytest.fixture
def tool_python(installed: Callable[[str], Path], tool_server: Server) -> Drive:
    """Runs a driver with the Python of the clients, on the server with a sandbox and a search service."""
    return _driving(installed, "python", tool_server, _environ(tool_server))


def _driving_node(installed: Callable[[str], Path], server: Server, environ: dict[str, str]) -> Drive:
    """Return a function that copies a driver beside its packages, which Node looks for above the file, and runs the driver."""

    def drive(driver: str, model: str) -> dict[str, Any]:
        folder = installed("node")
        for shared in (HERE / "node").glob("*steps.mjs"):
            shutil.copy(shared, folder)
        program = shutil.copy(HERE / "node" / driver, folder)
        return steps(["node", str(program)], server, {**environ, "MODEL": model})

    return drive


@pytest.fixture
def python(installed: Callable[[str], Path], server: Server, environ: dict[str, str]) -> Drive:
    """Runs a driver with the Python of the clients."""
    return _driving(installed, "python", server, environ)


@pytest.fixture
def formats(installed: Callable[[str], Path], server: Server, environ: dict[str, str]) -> Drive:
    """Runs a driver with the Python of the clients of other API formats than Responses."""
    environ = {**environ, "PYTHONPATH": str(HERE / "python"), "ANTHROPIC_API_KEY": server.key}
    return _driving(installed, "python_formats", server, environ, "python_formats")


@pytest.fixture
def older(installed: Callable[[str], Path], server: Server, environ: dict[str, str]) -> Drive:
    """The same, for clients that want an openai package of a major version before."""
    return _driving(installed, "older", server, environ)


def _driving(
    installed: Callable[[str], Path], group: str, server: Server, environ: dict[str, str], folder: str = "python"
) -> Drive:
    def drive(driver: str, model: str) -> dict[str, Any]:
        command = [str(installed(group)), str(HERE / folder / driver)]
        return steps(command, server, {**environ, "MODEL": model})

    return drive


def steps(command: list[str], server: Server, environ: dict[str, str]) -> dict[str, Any]:
    """Return the results of a driver's steps by name; a step that raised has an object with `error`."""
    result = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert result.returncode == 0, result.stderr[-4000:]
    assert "Traceback" not in server.output, server.output[-4000:]
    steps_by_name: dict[str, Any] = {}
    for line in result.stdout.splitlines():
        if line.startswith('{"step"'):
            step = json.loads(line)
            steps_by_name[step["step"]] = step["said"]
    return steps_by_name
