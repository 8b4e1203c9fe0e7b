"""Times of code in the sandbox, of the reading of a PDF, and memory of an upload: `python -m bench.hosted_tools`."""

from __future__ import annotations

import argparse
import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil

from bench.support.servers import ROOT, Server, python, serve
from responses_app.dialects.harmony.dialect import HarmonyDialect
from tests.support.extraction import documents

KEY = "sk-tools"
HEADERS = {"Authorization": f"Bearer {KEY}"}
PORT = 8773
TIMEOUT_S = 900.0
SAMPLE_S = 0.02
MIB = 1 << 20
CHUNK = b"x" * MIB
STAMP, SUM = "import time\ntime.time()", "1+1"
INCLUDE = ["code_interpreter_call.outputs"]


@dataclass(frozen=True, slots=True)
class Call:
    """Times of a call in milliseconds, from the end of the code to the end of the call, and the value of the code."""

    whole_ms: float
    ended: float
    value: str


def main() -> int:
    """Start a server, measure, print the figures."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="tools-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        environ = {"RESPONSES_DATA_DIR": str(folder / "data"), "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
        prepare = [python(), str(ROOT / "manage.py"), "sandbox", "--prepare"]
        subprocess.run(prepare, env={**os.environ, **environ}, check=True, stdout=subprocess.DEVNULL)
        command = [python(), "-m", "responses_app.server.processes.main", "--engine", _tape(folder), "--port", str(PORT)]
        with serve(command, PORT, environ, folder / "serve.log") as server:
            _measure(server, options.calls, options.megabytes)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--megabytes", type=int, default=200, help="size of the upload")
    return parser.parse_args()


def _measure(server: Server, calls: int, megabytes: int) -> None:
    with httpx2.Client(base_url=f"http://127.0.0.1:{server.port}/v1", headers=HEADERS, timeout=TIMEOUT_S) as client:
        _print("first call after the start of the server", [_run(client, " add numbers").whole_ms])
        _print("first call in a new container", [_run(client, " add numbers").whole_ms for _ in range(calls)])
        container = client.post("/containers", json={"name": "bench"}).json()["id"]
        _run(client, " add numbers", container)
        _print("`1+1` in a warm container", [_run(client, " add numbers", container).whole_ms for _ in range(calls)])
        entries = [_run(client, " read the clock", container) for _ in range(calls)]
        _print("from the end of the code to its entry", [(float(one.value) - one.ended) * 1e3 for one in entries])
        _print("response with a PDF of 10 pages", [_read_pdf(client) for _ in range(calls)])
        _print("response without a file", [_respond(client, "Hello") for _ in range(calls)])
        _upload(client, server, megabytes)


def _run(client: httpx2.Client, words: str, container: str | None = None) -> Call:
    """Stream a response whose model runs code, and return the times of the call."""
    tool = {"type": "code_interpreter", "container": container or {"type": "auto"}}
    body = {"model": "tape", "input": f"Please{words}", "tools": [tool], "include": INCLUDE, "stream": True}
    ended = began = whole = 0.0
    value = ""
    with client.stream("POST", "/responses", json=body) as response:
        for event in _events(response):
            if event["type"] == "response.code_interpreter_call_code.done":
                ended, began = time.time(), time.perf_counter()
            elif event["type"] == "response.code_interpreter_call.completed":
                whole = (time.perf_counter() - began) * 1e3
            elif event["type"] == "response.output_item.done" and event["item"]["type"] == "code_interpreter_call":
                value = event["item"]["outputs"][0]["logs"]
    return Call(whole, ended, value)


def _events(response: httpx2.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        if line.startswith("data: {"):
            yield json.loads(line[6:])


def _read_pdf(client: httpx2.Client) -> float:
    pdf = documents.pdf(*["Oslo and Bergen are cities by the sea. " * 20] * 10)
    data = f"data:application/pdf;base64,{base64.b64encode(pdf).decode()}"
    file = {"type": "input_file", "filename": "cities.pdf", "file_data": data}
    return _respond(client, [{"role": "user", "content": [file, {"type": "input_text", "text": "Hello"}]}])


def _respond(client: httpx2.Client, text: Any) -> float:
    began = time.perf_counter()
    client.post("/responses", json={"model": "tape", "input": text}).raise_for_status()
    return (time.perf_counter() - began) * 1e3


def _upload(client: httpx2.Client, server: Server, megabytes: int) -> None:
    """Upload a file, and print the largest growth of the processes of the server."""
    ended = threading.Event()
    before = _resident(server)
    peak = dict(before)

    def watch() -> None:
        while not ended.wait(SAMPLE_S):
            for pid, size in _resident(server).items():
                peak[pid] = max(peak.get(pid, 0), size)

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    try:
        client.post("/files", content=_form(megabytes), headers=_form_headers(megabytes)).raise_for_status()
    finally:
        ended.set()
        watcher.join()
    seconds = time.perf_counter() - began
    grown = {pid: (size - before.get(pid, 0)) / MIB for pid, size in peak.items()}
    most = max(grown, key=lambda pid: grown[pid])
    print(
        f"upload of {megabytes} MiB: {seconds:.1f} s; the process that grew most: {before.get(most, 0) / MIB:.0f} MiB before, ",
        end="",
    )
    print(f"{grown[most]:+.1f} MiB at most meanwhile; all processes together {sum(grown.values()):+.1f} MiB")


BOUNDARY = "bench-boundary"
HEAD = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--{BOUNDARY}\r\n'
    'Content-Disposition: form-data; name="file"; filename="large.txt"\r\nContent-Type: text/plain\r\n\r\n'
).encode()
END = f"\r\n--{BOUNDARY}--\r\n".encode()


def _form(megabytes: int) -> Iterator[bytes]:
    yield HEAD
    for _ in range(megabytes):
        yield CHUNK
    yield END


def _form_headers(megabytes: int) -> dict[str, str]:
    length = len(HEAD) + megabytes * MIB + len(END)
    return {"content-type": f"multipart/form-data; boundary={BOUNDARY}", "content-length": str(length)}


def _resident(server: Server) -> dict[int, int]:
    """Return the resident bytes of each process of Python of the server."""
    found, parent = dict[int, int](), psutil.Process(server.process.pid)
    for process in (parent, *parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            if process.name() != "postgres":
                found[process.pid] = process.memory_info().rss
    return found


def _print(name: str, milliseconds: list[float]) -> None:
    found = sorted(milliseconds)
    print(
        f"{name}: median {statistics.median(found):.0f} ms, {found[0]:.0f} to {found[-1]:.0f} ms, {len(found)} times",
        flush=True,
    )


def _tape(folder: Path) -> str:
    """Write recordings that run code and answer, and return the URL of the replay engine."""
    final = "<|channel|>final<|message|>Done.<|return|>"
    lines = [("<|start|>python", final)]
    lines += [(words, f"<|channel|>analysis to=python code<|message|>{code}<|call|>") for words, code in CODES.items()]
    lines.append(("Hello", final))
    path = folder / "tape.jsonl"
    texts = [json.dumps({"match": _encode(words), "chunks": [{"tokens": _encode(text)}]}) for words, text in lines]
    path.write_text("".join(f"{text}\n" for text in texts))
    return f"script://{path}?loop=1"


def _encode(text: str) -> list[int]:
    tokens: list[int] = HarmonyDialect().encoding.encode(text, allowed_special="all")
    return tokens


CODES = {" add numbers": SUM, " read the clock": STAMP}


if __name__ == "__main__":
    sys.exit(main())
