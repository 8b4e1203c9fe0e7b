"""Profile of the busiest Python process of a server under load, by py-spy: samples of the thread that holds the GIL."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

DURATION_S, RATE = 10, 200
SHOWN = 40
_LINE = re.compile(r":\d+\)$")


def profile(pid: int, send_load: Callable[[], object], stacks: Path) -> Path:
    """Profile a process while `send_load` is repeated. Write the stacks, and the functions with most samples; return the latter."""
    stacks.parent.mkdir(parents=True, exist_ok=True)
    command = [*_py_spy(), "record", "--pid", str(pid), "--output", str(stacks)]
    command += ["--duration", str(DURATION_S), "--rate", str(RATE), "--gil", "--format", "raw"]
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while recorder.poll() is None:
        send_load()
    if recorder.returncode:
        assert recorder.stderr
        raise RuntimeError(f"py-spy failed: {recorder.stderr.read().decode()}")
    summary = stacks.with_suffix(".txt")
    summary.write_text("\n".join(summarize(stacks.read_text().splitlines())) + "\n")
    return summary


def summarize(stacks: Iterable[str]) -> list[str]:
    """List the functions with the most samples, by themselves and with their callees, from lines `frame;frame;frame COUNT`."""
    alone: Counter[str] = Counter()
    inclusive: Counter[str] = Counter()
    for line in stacks:
        frames, _, count = line.rpartition(" ")
        names = [_LINE.sub(")", frame) for frame in frames.split(";")]
        alone[names[-1]] += int(count)
        inclusive.update(dict.fromkeys(names, int(count)))
    total = max(alone.total(), 1)
    tables = (("by themselves", alone), ("with their callees", inclusive))
    return [line for title, counts in tables for line in (f"{title}:", *_shares(counts, total), "")]


def _shares(counts: Counter[str], total: int) -> list[str]:
    return [f"{100 * count / total:5.1f} % {name}" for name, count in counts.most_common(SHOWN)]


def _py_spy() -> list[str]:
    if path := shutil.which("py-spy"):
        return [path]
    if uvx := shutil.which("uvx"):
        return [uvx, "py-spy"]
    raise SystemExit("--profile needs py-spy, or uvx to run py-spy, in the PATH")
