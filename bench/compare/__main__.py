"""This server beside vLLM's own /v1/responses: stored, not stored, and with the engine in a worker; the same model, settings and load.

    python -m bench.compare [--model random-64] [--streams 1 4 16 64 128 256] [--rounds 3] [--json FILE] [--plot FILE]
    python -m bench.compare --model Qwen/Qwen3-0.6B --gpu

All servers run all the time; each is measured while the others are idle. Reports medians, and the range of the rates.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.compare import random_model
from bench.compare.burst import Burst, bursts_table, describe_burst, measure_bursts
from bench.compare.contenders import PARSERS, ComparedModel, Contender, start_contenders
from bench.compare.measurement import MeasurementPlan, Sample, measure_all, send_load
from bench.compare.plot import draw
from bench.compare.report import describe, figures_table, ratios_table
from bench.support.docs import MEASURE, WRITE_DOCS, conditions, require_section, write_section
from bench.support.profiling import profile
from bench.support.servers import end_on_sigterm
from responses_app.demo.build import FOLDERS, build

PORT = 8811


def main() -> None:
    """Run the comparison."""
    options = _parse()
    end_on_sigterm()
    load = os.getloadavg()[0]
    plan = MeasurementPlan(options.streams, options.rounds, options.turns, options.tokens)
    with tempfile.TemporaryDirectory(prefix="verbatim-compare-") as name:
        folder, model = Path(name), _model(options, Path(name))
        if options.write_docs:
            require_section(_section(model.name))
        print(f"{model.name}: starting the servers …", flush=True)
        with start_contenders(
            model,
            folder,
            options.port,
            [*options.without, *(("unstored", "worker") if options.api else ())],
            agentic_api=options.agentic_api,
            pausing=options.pausing_executor,
            apis=options.api,
        ) as contenders:
            samples = _measure(contenders, plan)
            bursts = _measure_bursts(contenders, options)
            if options.profile:
                _profile(contenders, plan, options.profile)
    _report(samples, bursts, options, model.name, load)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=random_model.NAME, help="random-64, demo-chat, demo-harmony, a folder or a hub name")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 16, 64, 128, 256])
    parser.add_argument("--tokens", type=int, default=128, help="tokens per request")
    parser.add_argument("--turns", type=int, default=3, help="requests per stream and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--burst", type=int, default=64, metavar="N", help="short requests that arrive at once; 0 for no bursts"
    )
    parser.add_argument("--burst-tokens", type=int, default=16, metavar="N", help="tokens per request of a burst")
    parser.add_argument(
        "--api", action="store_true", help="Chat Completions and Messages in place of other kinds of this server"
    )
    parser.add_argument("--port", type=int, default=PORT, help="first of four ports")
    parser.add_argument("--gpu", action="store_true", help="engines on a GPU, without the settings for a CPU")
    parser.add_argument(
        "--pausing-executor", action="store_true", help="for vLLM's server on a CPU, in place of its executor, which spins"
    )
    parser.add_argument("--agentic-api", metavar="URL|COMMAND", help="a gateway; {vllm} and {port} are filled in a command")
    parser.add_argument("--without", nargs="+", default=[], metavar="KIND", help="kinds that are not measured")
    parser.add_argument("--reasoning-parser", help="reasoning parser of vLLM's own server")
    parser.add_argument("--tool-call-parser", help="tool parser of vLLM's own server")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="engine option for both servers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the samples of all rounds")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a plot of the rates as SVG")
    parser.add_argument(WRITE_DOCS, action="store_true", help="write tables and plot to docs/operations")
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="write profiles by py-spy, after the rounds")
    return parser.parse_args()


def _model(options: argparse.Namespace, folder: Path) -> ComparedModel:
    name: str = options.model
    if name == random_model.NAME:
        source = str(random_model.build_random_model(folder))
    else:
        source = str(build(name, folder)) if name in FOLDERS else name
    parsers = PARSERS.get(name)
    if options.reasoning_parser and options.tool_call_parser:
        parsers = (options.reasoning_parser, options.tool_call_parser)
    more = random_model.ENGINE_OPTIONS if name == random_model.NAME else {}
    more = more | dict(option.split("=", 1) for option in options.option)
    return ComparedModel(name.rstrip("/").rpartition("/")[2], source, parsers, options.gpu, more)


def _measure(contenders: Sequence[Contender], plan: MeasurementPlan) -> list[Sample]:
    samples: list[Sample] = []
    for sample in measure_all(contenders, plan):
        print(describe(sample), flush=True)
        samples.append(sample)
    return samples


def _measure_bursts(contenders: Sequence[Contender], options: argparse.Namespace) -> list[Burst]:
    if not options.burst:
        return []
    bursts: list[Burst] = []
    for one in measure_bursts(contenders, options.rounds, options.burst, options.burst_tokens):
        print(describe_burst(one), flush=True)
        bursts.append(one)
    return bursts


def _profile(contenders: Sequence[Contender], plan: MeasurementPlan, folder: Path) -> None:
    for contender, level in itertools.product(contenders, plan.levels):
        send = partial(send_load, contender, level, level * plan.turns, plan.tokens)
        # With a gateway the last server is the gateway.
        summary = profile(contender.servers[-1].busiest_process(), send, folder / f"{contender.kind}-{level}.stacks")
        print(f"profile: {summary}", flush=True)


def _report(samples: Sequence[Sample], bursts: Sequence[Burst], options: argparse.Namespace, model: str, load: float) -> None:
    tables = ["", *figures_table(samples), "", *ratios_table(samples), *(["", *bursts_table(bursts)] if bursts else [])]
    print("\n".join(tables))
    if options.json:
        measured: list[Sample | Burst] = [*samples, *bursts]
        options.json.write_text(json.dumps([one.as_json() for one in measured], indent=1))
    title = f"Tokens per second, {model}"
    if options.plot:
        options.plot.write_text(draw(samples, title))
    if options.write_docs:
        image = MEASURE.with_name(f"compare-{model}.svg")
        image.write_text(draw(samples, title))
        write_section(_section(model), [conditions(options.rounds, load), *tables, "", f"![{title}]({image.name})"])


def _section(model: str) -> str:
    return f"compare {model}"


if __name__ == "__main__":
    main()
