"""vLLM's own /v1/responses and this server, one after the other, on the same model, machine and load, as a table of ratios."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.load import Round, Target, load
from bench.servers import Server, python, serve
from responses_app.demo.build import build

RIVAL_PORT, OUR_PORT = 8811, 8812
KEY = "sk-bench"
VLLM_ENV = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
PARSERS = {
    "demo-chat": ("--reasoning-parser", "qwen3", "--tool-call-parser", "hermes", "--enable-auto-tool-choice"),
    "demo-harmony": ("--reasoning-parser", "openai_gptoss", "--tool-call-parser", "openai", "--enable-auto-tool-choice"),
}


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over the rounds of one level: tokens/s, seconds to first token (p50, p95), CPU microseconds per token."""

    rate: float
    first: float
    first95: float
    front: float
    engine: float


def measure(server: Server, target: Target, streams: int, options: argparse.Namespace, **fields: object) -> Figures:
    """Warm up, then measure `options.rounds` rounds of `streams` streams."""
    requests = max(streams * options.turns, 4)
    asyncio.run(load(target, streams, streams, options.tokens, **fields))
    rounds: list[Round] = []
    costs: list[tuple[float, float]] = []
    for _ in range(options.rounds):
        before = server.cpu()
        done = asyncio.run(load(target, streams, requests, options.tokens, **fields))
        after = server.cpu()
        rounds.append(done)
        costs.append(((after[0] - before[0]) / done.tokens * 1e6, (after[1] - before[1]) / done.tokens * 1e6))
    return Figures(
        statistics.median(one.rate for one in rounds),
        statistics.median(one.first(0.5) for one in rounds),
        statistics.median(one.first(0.95) for one in rounds),
        statistics.median(front for _, front in costs),
        statistics.median(engine for engine, _ in costs),
    )


def rival(model: str, path: Path, folder: Path, options: argparse.Namespace) -> list[Figures]:
    """vLLM's own server."""
    command = [python(), "-m", "vllm.entrypoints.openai.api_server", "--model", str(path), "--served-model-name", model]
    command += ["--port", str(RIVAL_PORT), "--host", "127.0.0.1", "--enforce-eager", "--max-model-len", "4096", *PARSERS[model]]
    with serve(command, RIVAL_PORT, VLLM_ENV, folder / "vllm.log") as server:
        return [measure(server, Target("127.0.0.1", RIVAL_PORT, model), n, options) for n in options.streams]


def ours(model: str, folder: Path, options: argparse.Namespace) -> list[Figures]:
    """This server, with everything stored."""
    command = [python(), "-m", "responses_app.server", "--model", model, "--port", str(OUR_PORT)]
    env = {**VLLM_ENV, "RESPONSES_DATA_DIR": str(folder / "data"), "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
    with serve(command, OUR_PORT, env, folder / "verbatim.log") as server:
        target = Target("127.0.0.1", OUR_PORT, model, KEY)
        return [measure(server, target, n, options, store=not options.no_store) for n in options.streams]


def table(streams: Sequence[int], theirs: Sequence[Figures], own: Sequence[Figures]) -> str:
    """The figures side by side, and our tokens/s as a share of theirs."""
    columns = f"{'tokens/s':>9} {'TTFT p50':>9} {'TTFT p95':>9} {'front µs/tok':>12} {'engine µs/tok':>13}"
    head = f"{'streams':>7}  {'server':<9} {columns}  ratio"
    lines = [head, "-" * len(head)]
    for count, a, b in zip(streams, theirs, own, strict=True):
        for name, one, ratio in (("vllm", a, ""), ("verbatim", b, f"{b.rate / a.rate:5.2f}")):
            lines.append(
                f"{count:>7}  {name:<9} {one.rate:>9.0f} {one.first * 1e3:>7.1f}ms {one.first95 * 1e3:>7.1f}ms "
                f"{one.front:>12.0f} {one.engine:>13.0f}  {ratio}"
            )
    return "\n".join(lines)


def main() -> None:
    """`python -m bench.compare`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo-chat", choices=sorted(PARSERS))
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--tokens", type=int, default=128, help="tokens per stream")
    parser.add_argument("--turns", type=int, default=3, help="requests per stream and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-store", action="store_true", help="measure this server with store:false")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = build(options.model, folder)
        print(f"{options.model}: vLLM's own server …", flush=True)
        theirs = rival(options.model, path, folder, options)
        print(f"{options.model}: this server …", flush=True)
        own = ours(options.model, folder, options)
        print(table(options.streams, theirs, own))


if __name__ == "__main__":
    main()
