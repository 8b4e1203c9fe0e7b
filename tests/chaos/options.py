"""Command line of the chaos test."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields

ENGINES = ("demo-chat", "demo-harmony", "script")
# Not terminal: with that setting clients see events that no log holds, and the proof would report them.
DURABILITY = ("visible", "disk")


@dataclass(frozen=True, slots=True)
class ChaosOptions:
    """Options of the chaos test: the number of each fault, and `at_once`, the number of concurrent responses."""

    responses: int = 200
    kills: int = 20
    engine_kills: int = 2
    stops: int = 0
    pauses: int = 0
    cuts: int = 0
    restarts: int = 0
    blackouts: int = 0
    durability: str = "visible"
    # So few that some have to wait for their turn.
    background: int = 2
    seed: int = 1
    web: int = 3
    seconds: float = 1800.0
    engine: str = "demo-chat"
    at_once: int = 12
    folder: str | None = None


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options to `parser`."""
    add = parser.add_argument
    add("--responses", type=int, default=200, help="number of responses (default: %(default)s)")
    add("--kills", type=int, default=20, help="SIGKILL of a web process, so often (default: %(default)s)")
    add("--engine-kills", type=int, help="SIGKILL of processes of the engine (default: one for ten kills)")
    add("--stops", type=int, help="SIGTERM of a web process (default: one for eight kills)")
    add("--pauses", type=int, help="SIGSTOP of a web process for 8 s (default: one for eight kills)")
    add("--cuts", type=int, help="connections of Postgres that are ended (default: as many as kills)")
    add("--restarts", type=int, help="immediate shutdowns of Postgres (default: one)")
    add("--blackouts", type=int, help="SIGKILL of all web processes at once (default: one for 20 kills)")
    add("--durability", choices=DURABILITY, default="visible", help="with disk Postgres and a web process also die together")
    add("--seed", type=int, default=1, help="what the load and the moments are chosen by (default: %(default)s)")
    add("--web", type=int, default=3, help="web processes (default: %(default)s)")
    add("--seconds", type=float, help="seconds after which the run is given up (default: half an hour, and 30 s for each kill)")
    add("--engine", choices=ENGINES, default="demo-chat", help="a demo model in vLLM, or a tape (default: %(default)s)")
    add("--at-once", type=int, default=12, help="responses under way at a time (default: %(default)s)")


def complete(parser: argparse.ArgumentParser, options: argparse.Namespace) -> ChaosOptions:
    """Fill the options that depend on others. Print a usage error and raise SystemExit, as argparse does."""
    kills, some = options.kills, -(-options.kills // 8)
    usual: dict[str, float] = {"engine_kills": kills // 10, "stops": some, "pauses": some, "cuts": kills, "restarts": 1}
    usual |= {"blackouts": kills // 20, "seconds": 1800 + 30 * kills}
    values = {one.name: getattr(options, one.name) for one in fields(ChaosOptions) if hasattr(options, one.name)}
    values |= {name: value for name, value in usual.items() if values[name] is None}
    if options.engine == "script":
        # A recording is played inside each web process, so no engine can be killed.
        values["engine_kills"] = 0
    if options.web < 2:
        parser.error("--web: a second process has to take over, so at least 2")
    return ChaosOptions(**values)


def parse(argv: Sequence[str]) -> ChaosOptions:
    """Parse a command line of this case alone."""
    parser = argparse.ArgumentParser()
    declare(parser)
    parser.set_defaults(folder=None)
    return complete(parser, parser.parse_args(argv))
