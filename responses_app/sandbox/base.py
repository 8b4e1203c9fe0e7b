"""Interface of the sandbox: containers with a Python interpreter each, and single runs of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

# Work folder of a container, as the code in the container names it.
WORK_FOLDER = "/mnt/data"
# Memory tiers of the OpenAI API reference, in MiB.
MEMORY_TIERS = {"1g": 1024, "4g": 4096, "16g": 16_384, "64g": 65_536}

Stream: TypeAlias = Literal["stdout", "stderr"]
# Takes output of a run as soon as the code writes it.
OnOutput: TypeAlias = Callable[[Stream, str], None]


class SandboxError(Exception):
    """Failure of the sandbox, not of the code in the sandbox. The message is fit for a client."""


class SandboxUnavailable(SandboxError):
    """No sandbox: the runner is not reachable, or namespaces are forbidden."""


class SandboxEnded(SandboxUnavailable):
    """The runner ended during a call."""


class SandboxBusy(SandboxUnavailable):
    """Too many containers or single runs."""


class ContainerExpired(SandboxError):
    """Unknown container: expired, deleted, or lost at a restart of the sandbox."""


class InvalidPath(SandboxError):
    """Path that names no regular file of the work folder."""


class FileMissing(SandboxError):
    """No such file in the work folder."""


class StorageFull(SandboxError):
    """Work folder without space for the file."""


@dataclass(frozen=True, slots=True)
class WorkFile:
    """Regular file of a work folder. `path` is absolute: `/mnt/data/x`. `size` is in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """State of a running container. `memory_mib` is the limit in effect, `idle_s` the seconds since the last use."""

    container_id: str
    memory_mib: int
    is_running_code: bool
    idle_s: float
    expires_in_s: float


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run of code in a container.

    `logs` is stdout and stderr in the order of arrival, `value` the repr of the last expression, `figures` are PNG images.
    `error` is the traceback, or a sentence for a run that was ended from outside. `was_killed`: all variables are lost.
    """

    logs: str = ""
    stdout: str = ""
    stderr: str = ""
    value: str | None = None
    figures: tuple[bytes, ...] = ()
    # New and changed files.
    files: tuple[WorkFile, ...] = ()
    # Paths of files that were stored, and which the code has deleted since.
    deleted: tuple[str, ...] = ()
    # Sentences for the model about the container.
    notices: tuple[str, ...] = ()
    error: str | None = None
    was_killed: bool = False
    # Output beyond the limit was dropped.
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class OnceLimits:
    """Limits of a single run: clock time in seconds, memory in MiB, bytes of stdout."""

    wall_s: float = 30
    memory_mib: int = 1024
    output_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OnceResult:
    """Result of a single run. `exit_code` is negative for a signal. `problem` names the limit that ended the run."""

    exit_code: int
    stdout: bytes
    stderr: str
    problem: str | None = None
