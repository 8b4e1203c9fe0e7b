"""Server of the large checkpoint with an engine worker, and the requests and checks that its tests share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
import psutil
from tokenizers import Tokenizer

from responses_app.protocol.conformance import StreamValidator
from responses_app.protocol.reducer import fold
from tests.support import plain_http
from tests.support.engines import large_checkpoint
from tests.support.server.processes import all_named, named
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

KEY = "sk-proportions"
MODEL = "large"
START_LIMIT_S = 480.0
STOP_LIMIT_S = 120.0
REQUEST_LIMIT_S = 120.0
CORE = "VLLM::EngineCore"
WEB = "server.processes.web_process"
Json = dict[str, Any]


@dataclass
class LargeModelServer:
    """Running `bin/serve --worker` with the large checkpoint in `checkpoint`."""

    server: Server
    checkpoint: Path
    headers: dict[str, str] = field(default_factory=lambda: {"Authorization": f"Bearer {KEY}"})

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the checkpoint, without code of this project."""
        return Tokenizer.from_file(str(self.checkpoint / "tokenizer.json"))

    @property
    def socket(self) -> Path:
        """The Unix socket of the engine worker."""
        return self.server.folder / "engines" / MODEL / "engine.sock"

    def request(self, method: str, path: str, body: Json | None = None) -> httpx2.Response:
        """Send a request to a path below `/v1`."""
        url = f"{self.server.url}/v1{path}"
        return plain_http.request(method, url, json=body, headers=self.headers, timeout=REQUEST_LIMIT_S)

    def create(self, path: str = "/responses", **body: Any) -> Json:
        """Send a POST request that succeeds and return the answer."""
        answer = self.request("POST", path, {"model": MODEL, **(_default(body) if path == "/responses" else body)})
        assert answer.status_code == 200, answer.text
        result: Json = answer.json()
        return result

    def stream(self, each: Callable[[Json], object] = lambda _: None, **body: Any) -> list[Json]:
        """Return the events of a whole stream, which is checked; `each` is called with every event when it comes."""
        return checked(list(self.events("POST", "/responses", each, {"model": MODEL, "stream": True, **_default(body)})))

    def replay(self, uid: str, after: int | None = None) -> list[Json]:
        """Return the events of a stored stream behind the event `after`, up to the end."""
        cursor = "" if after is None else f"&starting_after={after}"
        return list(self.events("GET", f"/responses/{uid}?stream=true{cursor}"))

    def events(
        self, method: str, path: str, each: Callable[[Json], object] = lambda _: None, body: Json | None = None
    ) -> Iterator[Json]:
        """Yield the events of a stream without their padding."""
        url = f"{self.server.url}/v1{path}"
        with plain_http.stream(method, url, json=body, headers=self.headers, timeout=REQUEST_LIMIT_S) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                if line.startswith("data: {"):
                    event: Json = json.loads(line.removeprefix("data: "))
                    event.pop("obfuscation", None)
                    each(event)
                    yield event

    def pid(self, name: str) -> int:
        """Return the process of the server with a part of its command line."""
        return named(self.server.process.pid, name)

    def wait_for_new(self, name: str, old: int) -> None:
        """Wait until another process of this name replaces the process `old`."""
        wait_until(lambda: set(all_named(self.server.process.pid, name)) - {old}, limit_s=REQUEST_LIMIT_S, poll_s=0.1)

    def memory_mib(self, *names: str) -> float:
        """Return the resident memory of the processes with any of the names."""
        processes = map(psutil.Process, all_named(self.server.process.pid, *names))
        return float(sum(process.memory_info().rss for process in processes)) / 2**20


def _default(body: Json) -> Json:
    """Add greedy sampling and no reasoning to a request that names neither."""
    return {"temperature": 0, "reasoning": {"effort": "none"}, **body}


def checked(events: list[Json]) -> list[Json]:
    """Check the events of a whole stream by the rules of the protocol, and return them."""
    check = StreamValidator()
    assert [broken for event in events for broken in check.feed(event)] + check.close() == []
    assert fold(events) == events[-1]["response"]
    return events


def deltas(events: list[Json]) -> list[str]:
    """Return the deltas of the answer's text."""
    return [event["delta"] for event in events if event["type"] == "response.output_text.delta"]


def text_of(response: Json) -> str:
    """Return the text of a response."""
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


@contextmanager
def large_model_server(folder: Path) -> Iterator[LargeModelServer]:
    """Write the checkpoint and run its server; both are in `folder`."""
    checkpoint = large_checkpoint.write(folder / "checkpoint")
    # With less precision some processors give other tokens for a prompt beside other requests, or behind a restart.
    options = ("--worker", "--model", f"{MODEL}={checkpoint}", "--", "--dtype", "float32")
    server = Server(folder / "data", *options, RESPONSES_API_KEY=KEY)
    try:
        yield LargeModelServer(server.ready(START_LIMIT_S), checkpoint)
    finally:
        server.end(STOP_LIMIT_S)
