"""The program of bin/test: a separate Postgres, the linters beside the tests, and what was not run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from responses_app.engines import orphan_guard
from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import default_url
from responses_app.server.bootstrap import install
from responses_app.server.bootstrap.installed import describe_missing_libraries
from responses_app.server.bootstrap.progress import Progress
from responses_app.server.postgres.cluster import Postgres, PostgresError
from responses_app.server.supervision import process_tree
from tests.support.suite import data_template

LINTERS = {
    "ruff": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "mypy": ["mypy"],
    "import-linter": ["lint-imports"],
    "style": ["python", "-m", "tests.style"],
}
PYTEST = ["pytest"]
# Only a run in several processes has the order and the progress of tests.support.suite.
PARALLEL = ["-q", "--no-header", "-p", "no:cacheprovider", "--dist", "loadscope", "--no-loadscope-reorder"]
# In a fresh checkout one process compiles what all processes of the tests import: otherwise each of them does, at the same time.
COLLECT = ["pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--lane=whole"]
# Three processes more than there are cores, as many tests wait for a database or for another process. Those of the lane fast wait
# less, and each process imports all of them first, which takes 13 s of CPU time.
PROCESSES = min((os.cpu_count() or 1) + 3, 8)
FAST_PROCESSES = min(os.cpu_count() or 1, 8)
COVERAGE = ["--cov=responses_app", "--cov=project", "--cov-report="]
REPORT = ["coverage", "report", "--skip-covered", "--skip-empty", "--sort=cover"]
# Best first: the headless shell has no windows of its own, and takes two thirds of the processor time of a whole Chromium.
BROWSERS = ("chromium-headless-shell", "chromium")
NO_BROWSER = f"there is no Chromium, which drives the pages; on Debian: apt-get install -y {BROWSERS[0]}"
# Lanes that the whole bin/test leaves out: they start one more engine, or install hundreds of packages from npm and PyPI.
NOT_RUN = (
    "NOT RUN: a model with 100,000 tokens and a context of 8,192: bin/test --lane proportions",
    "NOT RUN: clients of other projects (npm and PyPI), which are installed first: bin/test --lane clients",
    "NOT RUN: vllm-router (PyPI) in front of two engines, which is installed first: bin/test --lane routers",
)
# Nothing here has to survive a power cut.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
HELP = """bin/test              the linters and all tests
bin/test --fast       the linters and the tests that take little time, for daily work
bin/test --lane NAME  the linters (lint), or the tests of a lane
bin/test ARGUMENTS    pytest alone, which has this help:
"""
# What a test must not depend on, or not do.
ENVIRON = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
FOREIGN = ("DATABASE_URL", "SECRET_KEY", "RESPONSES_MODELS", "RESPONSES_API_KEY")


def main(arguments: Sequence[str]) -> int:
    """Run the linters and all tests, and return the exit code.

    `--fast` runs the linters and the lane `fast`, `--lane NAME` one lane; other arguments go to pytest, which runs alone.
    """
    signal.signal(signal.SIGTERM, _leave)
    orphan_guard.guard_children()
    process_tree.adopt_orphans()
    guards = frozenset(process_tree.descendants(os.getpid()))
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="verbatim-test-") as folder:
        try:
            install.ensure(Path(folder) / "install.log", progress, dev=True)
            if missing := describe_missing_libraries():
                progress.line(f"test: {missing}")
                return 1
            if {"-h", "--help"} & set(arguments):
                progress.line(HELP)
            return _run(arguments, Path(folder), progress)
        except (install.InstallError, PostgresError, subprocess.CalledProcessError) as error:
            progress.line(f"test: {error}")
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            process_tree.end_descendants(os.getpid(), spare=guards)


def _run(arguments: Sequence[str], folder: Path, progress: Progress) -> int:
    """Run the linters beside the tests, as tests often wait, and return the exit code."""
    linters, commands = commands_for(arguments)
    results: dict[str, tuple[int, float]] = {}
    environ = _environ(folder)
    # A daemon, so that an interrupted run does not wait for mypy.
    linting = threading.Thread(target=_lint, args=(linters, environ, progress, results), daemon=True)
    linting.start()
    if commands:
        data_template.make(folder, FAST, Path(environ[data_template.VARIABLE]))
        with Postgres(folder, FAST, may_create_databases=True):
            data_template.add_database(folder)
            if any(word.startswith("--lane=") for word in commands["pytest"]) and not _is_compiled():
                progress.line("Compiling the tests ...")
                with open(os.devnull, "wb") as nowhere:
                    _call(COLLECT, environ, nowhere)
            for name, command in commands.items():
                progress.line(f"--- {name}")
                results[name] = _call(command, environ)
    linting.join()
    # A linter that could not be started has failed.
    results |= {name: (1, 0.0) for name in linters if name not in results}
    for name, (code, seconds) in results.items():
        progress.line(f"{'ok' if code == 0 else 'FAILED':>6}  {name} ({seconds:.0f} s)")
    if not arguments:
        for line in NOT_RUN:
            progress.line(line)
    return max(min(abs(code), 1) for code, _ in results.values())


def commands_for(arguments: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """List the linters and the other commands for the arguments of bin/test, by their names."""
    match arguments:
        case [] | ["--record"]:
            return LINTERS, {"pytest": [*PYTEST, *_parallel(), "--lane=whole", *arguments]}
        case ["--fast", *more]:
            return LINTERS, {"pytest": [*PYTEST, *_parallel(FAST_PROCESSES), "--lane=fast", *more]}
        case ["--lane", "lint"]:
            return LINTERS, {}
        case ["--lane", "fast", *more]:
            return {}, {"pytest": [*PYTEST, *_parallel(FAST_PROCESSES), *COVERAGE, "--lane=fast", *more], "coverage": REPORT}
        case ["--lane", lane, *more]:
            return {}, {"pytest": [*PYTEST, *_parallel(), f"--lane={lane}", *more]}
    return {}, {"pytest": [*PYTEST, *arguments]}


def _parallel(processes: int = PROCESSES) -> list[str]:
    """List the options of xdist."""
    return [*PARALLEL, "-n", os.environ.get("TEST_PROCESSES", str(processes))]


def _is_compiled() -> bool:
    """Check that a run before this one compiled the tests, or that none can. The folder is the last one of the tests."""
    folder = ROOT / "tests" / "workers"
    return any(folder.glob("__pycache__/test_*.pyc")) or not os.access(folder, os.W_OK)


def _lint(
    linters: Mapping[str, Sequence[str]], environ: Mapping[str, str], progress: Progress, results: dict[str, tuple[int, float]]
) -> None:
    """Run the linters in turn into `results`, and print the output of each in a single piece."""
    with tempfile.TemporaryFile() as output:
        for name, command in linters.items():
            output.truncate(0)
            output.seek(0)
            results[name] = _call(command, environ, output)
            output.seek(0)
            progress.line(f"--- {name}\n{output.read().decode(errors='replace')}".rstrip())


def _call(command: Sequence[str], environ: Mapping[str, str], output: IO[bytes] | None = None) -> tuple[int, float]:
    """Run a program of the virtual environment; return the exit code and its seconds."""
    began = time.monotonic()
    program = str(Path(sys.prefix) / "bin" / command[0])
    code = subprocess.run([program, *command[1:]], env=environ, cwd=ROOT, stdout=output, stderr=output, check=False).returncode
    return code, time.monotonic() - began


def _environ(folder: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    paths = {"RESPONSES_DATA_DIR": str(folder), data_template.VARIABLE: str(folder / "template")}
    return {**inherited, **ENVIRON, **paths, "DATABASE_URL": default_url(folder)}


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
