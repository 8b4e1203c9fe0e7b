"""Client matrix: Codex, the OpenAI Agents SDK and the AI SDK do small tasks on a served model; prints which tasks succeed, and why not.

    python -m bench.client_matrix
    python -m bench.client_matrix --model demo-chat --model demo-harmony
    python -m bench.client_matrix --url http://127.0.0.1:8000 --key "$(cat .data/api_key)" --model NAME

Without --url, each model is served by a `bin/serve --model SOURCE` of its own, one after the other, and so is a recording that answers as
a perfect model would: a task that fails with the model and passes with the recording is the model's failure. The clients are installed
from npm and PyPI into .data/clients. Codex runs the commands of the model: in its sandbox, unless --sandbox says otherwise.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.client_matrix.clients import MatrixClient, all_clients
from bench.client_matrix.install import CACHE, NotInstalled
from bench.client_matrix.matrix import MatrixAddress, run_matrix
from bench.client_matrix.outcome import TaskResult
from bench.client_matrix.recording import write_recording
from bench.client_matrix.table import format_results
from bench.support.servers import ROOT, serve
from responses_app.server.cli.model_specs import parse_spec

KEY = "sk-matrix"
SANDBOXES = ("read-only", "workspace-write", "danger-full-access")


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        help="name of a served model with --url, else a --model of bin/serve (default: demo-chat)",
    )
    parser.add_argument(
        "--recorded",
        action=argparse.BooleanOptionalAction,
        help="also a recording of the right answers, which tells failures of the model apart (default: without --url)",
    )
    parser.add_argument("--url", help="base URL of a running server")
    parser.add_argument("--key", default=KEY, help="API key of the running server")
    parser.add_argument("--client", action="append", choices=sorted(all_clients()), help="default: all")
    parser.add_argument("--task", action="append", metavar="NAME", help="task to do; default: all")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="for one task (default: 120)")
    parser.add_argument(
        "--context", type=int, default=32768, metavar="TOKENS", help="Codex's model_context_window (default: 32768)"
    )
    parser.add_argument("--sandbox", choices=SANDBOXES, default="workspace-write", help="Codex's sandbox_mode")
    parser.add_argument(
        "--homes",
        type=Path,
        default=CACHE,
        metavar="FOLDER",
        help="for Codex's homes; no sandbox below /tmp (default: .data/clients)",
    )
    parser.add_argument("--port", type=int, default=0, help="port of the servers that are started (default: a free one)")
    options = parser.parse_args()
    if options.url and not options.model:
        parser.error("name a --model of the server")
    if options.url and options.recorded:
        parser.error("--recorded needs a server of its own, so it cannot be used with --url")
    options.model = options.model or ["demo-chat"]
    options.recorded = not options.url if options.recorded is None else options.recorded
    return options


def installed_clients(options: argparse.Namespace) -> list[MatrixClient]:
    """Install the chosen clients; a client that cannot be installed is left out with a message."""
    chosen = all_clients(options.sandbox, options.context, options.homes)
    clients = []
    for client in (chosen[name] for name in options.client or chosen):
        try:
            client.install()
            clients.append(client)
        except NotInstalled as reason:
            print(f"{client.name} is left out: {reason}", file=sys.stderr, flush=True)
    return clients


@contextmanager
def served(source: str, port: int) -> Iterator[MatrixAddress]:
    """Serve a model for as long as the block lasts."""
    port = port or free_port()
    with tempfile.TemporaryDirectory(prefix="client-matrix-", ignore_cleanup_errors=True) as folder:
        env = {"RESPONSES_DATA_DIR": f"{folder}/data", "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
        command = [str(ROOT / "bin" / "serve"), "--port", str(port), "--model", source]
        with serve(command, port, env, Path(folder) / "serve.log"):
            yield MatrixAddress(f"http://127.0.0.1:{port}", KEY)


def free_port() -> int:
    """Return a port that no program listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def results(options: argparse.Namespace, clients: list[MatrixClient]) -> Iterator[TaskResult]:
    """Do all tasks on all models."""
    if options.url:
        address = MatrixAddress(options.url.rstrip("/").removesuffix("/v1"), options.key)
        for model in options.model:
            yield from run_matrix(address, model, clients, options.task, options.limit)
        return
    with tempfile.TemporaryDirectory(prefix="client-matrix-tape-") as folder:
        for source in [*options.model, *([write_recording(Path(folder))] if options.recorded else [])]:
            with served(source, options.port) as address:
                yield from run_matrix(address, parse_spec(source).name, clients, options.task, options.limit)


def main() -> int:
    """Run the matrix and print the tables; after Ctrl-C, print the tables of ended tasks.

    The exit code is 1 if a task failed, 2 if no task has ended.
    """
    options = parse_options()
    all_results: list[TaskResult] = []
    with suppress(KeyboardInterrupt):
        for result in results(options, installed_clients(options)):
            all_results.append(result)
            print(
                f"{result.model} {result.client} {result.task}: {result.verdict} {result.reason}", file=sys.stderr, flush=True
            )
    if not all_results:
        print("no task was done", file=sys.stderr)
        return 2
    print(format_results(all_results))
    return 1 if any(result.verdict == "fail" for result in all_results) else 0


if __name__ == "__main__":
    sys.exit(main())
