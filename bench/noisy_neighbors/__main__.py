"""`python -m bench.noisy_neighbors`: for each attack, the latency of another project's requests beside their quiet latency."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

from bench.noisy_neighbors.attacker import LOWEST_PRIORITY, command
from bench.noisy_neighbors.attacks import ATTACKS
from bench.noisy_neighbors.target import READY, MeasuredTarget
from bench.noisy_neighbors.tool_attacks import BURN_CODE, BURN_WORDS, SLEEP_CODE, SLEEP_WORDS, TOOL_ATTACKS
from bench.support.servers import ROOT, BenchServer, end_on_sigterm, python, serve
from responses_app.dialects.harmony.dialect import HarmonyDialect

KEY = "sk-neighbor"
HEADERS = {"Authorization": f"Bearer {KEY}"}
PORT = 8771
TIMEOUT_S = 120.0
SETTLE_S = 1.0
MAX_RATIO = 2.0
NAMES = [*ATTACKS, *TOOL_ATTACKS]


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds that requests took, and the largest resident size of the server's processes meanwhile, in bytes."""

    seconds: list[float]
    peak: int

    @property
    def median_ms(self) -> float:
        """The median in milliseconds."""
        return statistics.median(self.seconds) * 1e3

    @property
    def slowest_ms(self) -> float:
        """The longest in milliseconds."""
        return max(self.seconds) * 1e3


def ask(client: httpx2.Client, model: str) -> float:
    """Make a response as the innocent project; return the seconds, or infinity for a refusal."""
    body = {"model": model, "input": "Hello!", "max_output_tokens": 16, "temperature": 0}
    began = time.perf_counter()
    answer = client.post("/v1/responses", json=body)
    seconds = time.perf_counter() - began
    return seconds if answer.status_code == 200 else math.inf


def observe(server: BenchServer, model: str, seconds: float) -> Latencies:
    """Send requests in sequence for so many seconds."""
    latencies: list[float] = []
    peak, end = 0, time.monotonic() + seconds
    with httpx2.Client(base_url=f"http://127.0.0.1:{server.port}", headers=HEADERS, timeout=TIMEOUT_S) as client:
        while time.monotonic() < end or len(latencies) < 3:
            latencies.append(ask(client, model))
            peak = max(peak, resident(server))
    return Latencies(latencies, peak)


def resident(server: BenchServer) -> int:
    """Return the resident size of the server's process tree in bytes."""
    total, parent = 0, psutil.Process(server.process.pid)
    for process in (parent, *parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total


@contextmanager
def attack(name: str, target: MeasuredTarget, niceness: int) -> Iterator[None]:
    """Run an attack in a separate process, which has prepared it, for as long as the block lasts."""
    with subprocess.Popen(command(name, target, niceness), cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline().strip() != READY:
                raise RuntimeError(f"the attack {name} did not begin")
            yield
        finally:
            process.kill()


def make_key(data: Path, name: str) -> str:
    """Create the API key of another project."""
    environ = {**os.environ, "RESPONSES_DATA_DIR": str(data)}
    made = [sys.executable, str(ROOT / "manage.py"), "createkey", name, "--project", name]
    return subprocess.run(made, env=environ, capture_output=True, text=True, check=True).stdout.split()[-1]


def tape(folder: Path) -> str:
    """Write recordings that run code that sleeps or computes, or say hello, and return the URL of the replay engine."""

    def line(words: str, text: str) -> str:
        tokens = [{"tokens": [token]} for token in encode(text, allowed_special="all")]
        return json.dumps({"match": encode(words, allowed_special="all"), "chunks": tokens}) + "\n"

    encode = HarmonyDialect().encoding.encode
    final = "<|channel|>final<|message|>Hello there!<|return|>"
    call = "<|channel|>analysis to=python code<|message|>{}<|call|>"
    lines = [
        line("<|start|>python", final),
        line(SLEEP_WORDS, call.format(SLEEP_CODE)),
        line(BURN_WORDS, call.format(BURN_CODE)),
        *(line(words, final) for words in ("Hello", "Hi", "word")),
    ]
    path = folder / "tape.jsonl"
    path.write_text("".join(lines))
    return f"script://{path}?loop=1"


def measure(server: BenchServer, data: Path, options: argparse.Namespace) -> bool:
    """Print a line for each attack; return True if every median stayed within twice the quiet median."""
    model = options.model or "tape"
    target = MeasuredTarget(server.port, model, make_key(data, "attacker"))
    observe(server, model, options.seconds / 2)
    print(f"{'attack':<28} {'quiet':>8} {'attacked':>9} {'slowest':>9} {'ratio':>6} {'memory':>9}", flush=True)
    fine = True
    for name in options.attacks:
        quiet = observe(server, model, options.seconds / 2)
        with attack(name, target, options.nice):
            time.sleep(SETTLE_S)
            busy = observe(server, model, options.seconds)
        ratio = busy.median_ms / quiet.median_ms
        fine &= ratio <= MAX_RATIO
        figures = f"{quiet.median_ms:>5.0f} ms {busy.median_ms:>6.0f} ms {busy.slowest_ms:>6.0f} ms {ratio:>6.2f}"
        print(f"{name:<28} {figures} {busy.peak / 1e6:>6.0f} MB", flush=True)
        time.sleep(SETTLE_S)
    return fine


def main() -> int:
    """Run the benchmark; the exit code is 1 if an attack slows another project down by more than a factor of two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attacks", nargs="*", default=NAMES, metavar="ATTACK", help=f"default: all of {', '.join(NAMES)}")
    parser.add_argument("--model", help="a demo model; default: a recording, which measures the front end alone")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each attack is observed")
    parser.add_argument(
        "--nice", type=int, default=LOWEST_PRIORITY, help="priority of the attacker's process, 19 is the lowest"
    )
    options = parser.parse_args()
    end_on_sigterm()
    if unknown := set(options.attacks) - set(NAMES):
        parser.error(f"unknown attacks: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="neighbors-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        source = ["--model", options.model] if options.model else ["--engine", tape(folder)]
        started = [python(), "-m", "responses_app.server.processes.main", *source, "--port", str(PORT)]
        environ = {
            "RESPONSES_DATA_DIR": str(folder / "data"),
            "RESPONSES_API_KEY": KEY,
            "RESPONSES_LOG_LEVEL": "WARNING",
            "RESPONSES_MCP_PRIVATE_HOSTS": "127.0.0.1",
        }
        with serve(started, PORT, environ, folder / "serve.log") as server:
            return 0 if measure(server, folder / "data", options) else 1


if __name__ == "__main__":
    sys.exit(main())
