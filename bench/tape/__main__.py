"""Events per second of streams from a recording, stored and not stored, with the CPU time of each process.

    python -m bench.tape [--streams 1 16 64 256] [--tokens 400] [--web 1] [--rounds 3] [--rate TOKENS_PER_S]

The engine replays a recording, so the figures are those of the server alone. Without `--rate` the recording has no delays. With
`--rate` all streams begin at once, and the gaps between the reads of a stream and the times to the first event are printed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.support.servers import ROOT, Server, end_on_sigterm, serve
from bench.tape.measurement import KEY, Figures, Round, describe, describe_times, measure, summarize
from bench.tape.recording import write_tape

PORT = 8793


def main() -> None:
    """Measure each number of streams, stored and not stored in turns."""
    options = _parse()
    end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="verbatim-tape-") as folder:
        tape = write_tape(Path(folder), options.tokens, options.rate)
        command = [str(ROOT / "bin/serve"), "--port", str(options.port), "--engine", f"script://{tape}?loop=1"]
        command += ["--web", str(options.web)] if options.web > 1 else []
        env = {
            "RESPONSES_DATA_DIR": f"{folder}/data",
            "RESPONSES_API_KEY": KEY,
            "RESPONSES_LOG_LEVEL": "WARNING",
            "RESPONSES_MAX_CONCURRENT": "4000",
        }
        with serve(command, options.port, env, Path(folder) / "log") as server:
            for streams in options.streams:
                _measure_level(server, streams, options)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64, 256])
    for name, default in (("tokens", 400), ("web", 1), ("rounds", 3), ("port", PORT), ("requests", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, help="tokens per second of each stream")
    parser.add_argument("--only", choices=("stored", "unstored"))
    return parser.parse_args()


def _measure_level(server: Server, streams: int, options: argparse.Namespace) -> list[Figures]:
    kinds = [store for store, name in ((True, "stored"), (False, "unstored")) if options.only in (None, name)]
    requests = options.requests or (streams if options.rate else max(2 * streams, 10))
    measure(server, streams, streams, store=False)
    rounds: dict[bool, list[Round]] = {store: [] for store in kinds}
    for _ in range(options.rounds):
        for store in kinds:
            rounds[store].append(measure(server, streams, requests, store=store))
    every = [summarize(streams, store, rounds[store]) for store in kinds]
    for figures in every:
        print(describe(figures), flush=True)
        if options.rate is not None:
            print(
                describe_times(sorted(rounds[figures.store], key=lambda one: one.load.gap(0.99))[options.rounds // 2].load),
                flush=True,
            )
    return every


if __name__ == "__main__":
    main()
