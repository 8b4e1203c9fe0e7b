"""What it costs to keep every event: the same load with store:false, and with every event, or the terminal one alone, awaited."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from bench.support.load import Load, run_load, story_requests
from bench.support.servers import python, serve
from bench.support.stream_client import Target

KEY, PORT = "sk-bench", 8812
ENV = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
KINDS = ("store:false", "store:true")


def measure(durability: str, folder: Path, options: argparse.Namespace) -> dict[tuple[int, str], list[Load]]:
    """Rounds by number of streams and kind, the kinds in turns, so that a machine that slows down slows both."""
    command = [python(), "-m", "responses_app.server", "--model", options.model, "--port", str(PORT)]
    env = ENV | {"RESPONSES_DATA_DIR": str(folder), "RESPONSES_DURABILITY": durability}
    rounds: dict[tuple[int, str], list[Load]] = {}
    with serve(command, PORT, env, folder / "serve.log") as server:
        target = Target("127.0.0.1", server.port, options.model, KEY)
        for streams in options.streams:
            _send(target, streams, streams, options.tokens, store=True)
            for _ in range(options.rounds):
                for kind in KINDS:
                    done = _send(target, streams, streams * options.turns, options.tokens, store=kind == "store:true")
                    rounds.setdefault((streams, kind), []).append(done)
    return rounds


def _send(target: Target, streams: int, requests: int, tokens: int, *, store: bool) -> Load:
    fields = {"temperature": 0, "max_output_tokens": tokens, "store": store}
    return run_load(target, story_requests(target, requests, **fields), streams)


def main() -> None:
    """`python -m bench.durability`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo-chat")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--tokens", type=int, default=128, help="tokens per stream")
    parser.add_argument("--turns", type=int, default=3, help="requests per stream and round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(
        f"{'RESPONSES_DURABILITY':<21} {'streams':>7} {'store:false':>12} {'store:true':>11} {'ratio':>6} {'first token':>20}"
    )
    for durability in ("disk", "visible", "terminal"):
        with tempfile.TemporaryDirectory() as name:
            rounds = measure(durability, Path(name), options)
        for streams in options.streams:
            free, kept = (rounds[streams, kind] for kind in KINDS)
            ratio = statistics.median(b.rate / a.rate for a, b in zip(free, kept, strict=True))
            rates = [statistics.median(one.rate for one in some) for some in (free, kept)]
            first = [statistics.median(one.first(0.5) for one in some) * 1e3 for some in (free, kept)]
            print(
                f"{durability:<21} {streams:>7} {rates[0]:>8.0f} t/s {rates[1]:>7.0f} t/s {ratio:>6.2f} "
                f"{first[0]:>8.1f} {first[1]:>8.1f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
