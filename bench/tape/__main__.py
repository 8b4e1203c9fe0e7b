"""Events per second of streams from a recording, stored and not stored, with the CPU time of each process.

    python -m bench.tape [--streams 1 16 64 256] [--tokens 400] [--web 1] [--rounds 3] [--rate TOKENS_PER_S]

The engine replays a recording, so the figures are those of the server alone. Without `--rate` the recording has no delays. With
`--rate` all streams begin at once, and the gaps between the reads of a stream and the times to the first event are printed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path

from bench.support.docs import WRITE_DOCS, conditions, require_section, write_section
from bench.support.profiling import profile
from bench.support.servers import ROOT, BenchServer, end_on_sigterm, serve
from bench.tape.measurement import KEY, Measured, MeasuredRound, measure, summarize
from bench.tape.recording import write_tape
from bench.tape.report import describe, describe_times, rates_table, times_table

PORT = 8793


def main() -> None:
    """Measure each number of streams, stored and not stored in turns."""
    options = _parse()
    end_on_sigterm()
    section, load = "tape" if options.rate is None else "tape with a rate", os.getloadavg()[0]
    if options.write_docs:
        require_section(section)
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
            measured = [one for streams in options.streams for one in _measure_level(server, streams, options)]
    table = rates_table(measured) if options.rate is None else times_table(measured)
    print("\n".join(["", *table]))
    if options.write_docs:
        write_section(section, [conditions(options.rounds, load), "", *table])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64, 256])
    for name, default in (("tokens", 400), ("web", 1), ("rounds", 3), ("port", PORT), ("requests", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, help="tokens per second of each stream")
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="write profiles of the web process by py-spy")
    parser.add_argument("--only", choices=("stored", "unstored"))
    parser.add_argument(WRITE_DOCS, action="store_true", help="write the table to docs/operations/measure.md")
    return parser.parse_args()


def _measure_level(server: BenchServer, streams: int, options: argparse.Namespace) -> list[Measured]:
    kinds = [store for store, name in ((True, "stored"), (False, "unstored")) if options.only in (None, name)]
    requests = options.requests or (streams if options.rate else max(2 * streams, 10))
    measure(server, streams, streams, store=False)
    rounds: dict[bool, list[MeasuredRound]] = {store: [] for store in kinds}
    for _ in range(options.rounds):
        for store in kinds:
            rounds[store].append(measure(server, streams, requests, store=store))
    measured = [summarize(streams, store, rounds[store]) for store in kinds]
    for one in measured:
        print(describe(one.figures), flush=True)
        if options.rate is not None:
            print(describe_times(one.typical), flush=True)
        if options.profile:
            store = one.figures.store
            stacks = options.profile / f"{'stored' if store else 'unstored'}-{streams}.stacks"
            send = partial(measure, server, streams, requests, store=store)
            print(f"profile: {profile(server.busiest_process(), send, stacks)}", flush=True)
    return measured


if __name__ == "__main__":
    main()
