"""One `bin/serve` with a scripted engine for all tests that leave it as it was; and which tests stay together when two run at a time."""

from __future__ import annotations

import gc
import json
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextvars import copy_context
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest import runner
from _pytest.unittest import TestCaseFunction
from django.conf import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from responses_app.utils import imports
from tests.support import hypothesis_profile
from tests.support.suite import data_template, file_seconds, lanes, shared_state, slow_tests
from tests.support.suite.progress import SuiteProgress

if TYPE_CHECKING:
    from tests.support.server.serve_command import Server

hypothesis_profile.load()

# Folders that one worker runs: their tests share a session fixture that is slow to start, or import vLLM and torch, for which
# each process needs ten seconds of CPU.
TOGETHER = ("contract", "engines", "proportions", "clients", "routers", "web")
# The longest of these would end alone: beside enough other processes it is three groups, of which two have a server and a browser. They
# are among the longest groups, which begin together: so none begins behind another one, whose browser would still run.
CHAT, PAGES = "tests/web/chat/", "tests/web without a browser"
PROCESSES_WITH_PARTS = 4
# Files that import the anthropic package, which takes two seconds of CPU in each process.
ANTHROPIC = frozenset(
    {"tests/api/formats/test_messages.py", "tests/api_formats/test_message_stream.py", "tests/docs/test_docs.py"}
)


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Schedule of xdist that divides neither a file nor a folder of TOGETHER between workers, as their tests share fixtures.

    xdist's own groups are of no use here: it writes them into `_nodeid`, which pytest 9.2 does not read back.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid, self.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    return FolderScheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Hash passwords with MD5, copy the migrated database, and import the test modules without the garbage collector.

    PBKDF2 takes a third of a second for each user that a test makes. The collector takes a fifth of the time of the imports.
    """
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    if data_template.VARIABLE in os.environ:
        database: dict[str, Any] = settings.DATABASES["default"]
        database.setdefault("TEST", {})["TEMPLATE"] = data_template.DATABASE
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(
            SuiteProgress(processes=config.getoption("numprocesses") or 1, record=config.getoption("--record"))
        )
    gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over all that was imported, and be rare while a test imports vLLM."""
    gc.freeze()
    imports.collect_rarely()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run each test of Django in a copy of the context.

    The event loop of each asynchronous test leaves a context variable behind, and asgiref sets all of these at each call of a thread:
    after hundreds of tests this takes longer than the tests.
    """
    if not isinstance(item, TestCaseFunction):
        return None
    return copy_context().run(runner.pytest_runtest_protocol, item, nextitem)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Report the processor time of each test of a run that is recorded."""
    began = slow_tests.processor_s()
    try:
        yield
    finally:
        if item.config.getoption("--record"):
            item.user_properties.append((slow_tests.PROPERTY, slow_tests.processor_s() - began))


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer() -> bool | None:
    """Leave the timer of a test alone in another thread, where it cannot be cancelled, until the test has ended.

    Asynchronous tests of Django run in a thread. Without this their failed subtests fail with "signal only works in main thread".
    """
    return None if threading.current_thread() is threading.main_thread() else True


def pytest_addoption(parser: pytest.Parser) -> None:
    lanes.add_option(parser)
    parser.addoption("--record", action="store_true", help="write file_seconds.json and slow_tests.json of tests/support/suite")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return lanes.ignores(config, collection_path) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    lanes.deselect(config, items)
    _sort(items, config)


def _sort(items: list[pytest.Item], config: pytest.Config) -> None:
    """Put the longest groups first, so that no process is left with a long one at the end."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for nodeid, expected in file_seconds.expected([item.nodeid for item in items]).items():
        seconds[_group(nodeid, config)] += expected
    items.sort(key=lambda item: -seconds[_group(item.nodeid, config)])


def _folder(nodeid: str) -> str:
    return nodeid.split("/")[1]


def _group(nodeid: str, config: pytest.Config) -> str:
    folder, file = _folder(nodeid), file_seconds.file_of(nodeid)
    if folder == "web" and config.getoption("--lane") == "fast":
        return file
    if folder == "web" and _processes(config) >= PROCESSES_WITH_PARTS:
        return CHAT if file.startswith(CHAT) else folder if _drives_browser(file) else PAGES
    if folder in TOGETHER:
        return folder
    return "anthropic" if file in ANTHROPIC else file


@cache
def _drives_browser(file: str) -> bool:
    return "playwright" in (Path(__file__).parents[1] / file).read_text()


def _processes(config: pytest.Config) -> int:
    """Return the number of processes of xdist, in each of them and in the one that schedules."""
    if (worker := getattr(config, "workerinput", None)) is not None:
        return int(worker["workercount"])
    return config.getoption("numprocesses", None) or 0


@pytest.fixture(autouse=True)
def no_state_of_other_tests(request: pytest.FixtureRequest) -> None:
    """Clear what the tests of a process share."""
    shared_state.clear(request)


@pytest.fixture(scope="session")
def tape(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of an engine that says hello, slowly enough to be interrupted."""
    from openai_harmony import load_harmony_encoding

    encoding = load_harmony_encoding("HarmonyGptOss")
    ids = encoding.encode("<|channel|>final<|message|>Hello there!<|return|>", allowed_special="all")
    steps: list[dict[str, Any]] = [step for token in ids for step in ({"tokens": [token]}, {"delay": 0.1})]
    tape = tmp_path_factory.mktemp("tapes") / "tape.jsonl"
    tape.write_text(json.dumps({"chunks": steps}) + "\n")
    return f"script://{tape}?loop=1"


@pytest.fixture(scope="session")
def mcp_url() -> Iterator[str]:
    """The URL of an MCP server for all tests that leave it running: a start takes more than a second of CPU."""
    from tests.support.mcp.serving import mcp_server

    with mcp_server() as url:
        yield url


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, tape: str) -> Iterator[Server]:
    """The server. It has a key that it was given, and allows one origin of browser apps."""
    # Here, as most tests need neither this nor what it imports.
    from tests.support.server.serve_command import Server

    # The first use of the sandbox starts the sandbox, which installs packages for code if an index is configured.
    folder = tmp_path_factory.mktemp("shared") / "data"
    origin = "https://app.example"
    server = Server(folder, "--engine", tape, RESPONSES_API_KEY="sk-my-own-key", RESPONSES_CORS_ORIGINS=origin)
    yield server.ready()
    server.end()
