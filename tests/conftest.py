"""One `bin/serve` with a scripted engine for all tests that leave it as it was; and which tests stay together when two run at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.server.serving import Server


# Rooms whose tests share something that is slow to start: one worker runs all of them.
TOGETHER = {"clients": "clients", "contract": "contract", "server": "shared", "web": "shared"}
# Their first test waits until several engines are up, which takes minutes where two workers start them at once.
PATIENT = frozenset({"contract", "engines", "web"})
PATIENCE = 1200


@pytest.hookimpl(tryfirst=True)  # Before xdist looks for the groups.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one file share its fixtures, and so do those of some rooms: none of these need be divided between workers.

    They are divided all the same under pytest 9.2: xdist writes the group into `_nodeid`, which is not what is read back.
    """
    for item in items:
        place = item.path.relative_to(Path(__file__).parent)
        item.add_marker(pytest.mark.xdist_group(TOGETHER.get(place.parts[0], str(place))))
        if place.parts[0] in PATIENT and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE))


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
def shared(tmp_path_factory: pytest.TempPathFactory, tape: str) -> Iterator[Server]:
    """The server. It has a key that it was given."""
    # Here, as most tests need neither this nor what it imports.
    from tests.server.serving import Server

    server = Server(tmp_path_factory.mktemp("shared") / "data", "--engine", tape, RESPONSES_API_KEY="sk-my-own-key")
    yield server.ready()
    server.end()
