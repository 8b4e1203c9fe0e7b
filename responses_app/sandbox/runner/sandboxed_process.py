"""Process in bubblewrap: start with the system call filter, and a stop that ends all descendants."""

from __future__ import annotations

import asyncio
import platform
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO

from responses_app.sandbox.runner import seccomp

EXIT_LIMIT_S = 10.0
OWN_EXIT_LIMIT_S = 1.0


def start(
    bwrap: str,
    arguments: Callable[[int], Sequence[str]],
    program: Sequence[str],
    environment: Mapping[str, str],
    descriptors: Sequence[int] = (),
    *,
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start `program` with `arguments(seccomp)` of bubblewrap, where `seccomp` is a descriptor of the filter.

    stdout and stderr are pipes. Bubblewrap reads its arguments from a file: the code can read its command line, but must not
    read the paths of this machine there. Raises OSError.
    """
    with _file(seccomp.program(platform.machine())) as file, _file(_terminated(arguments(file.fileno()))) as options:
        return subprocess.Popen(
            ["bwrap", "--args", str(options.fileno()), *program],
            executable=bwrap,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            pass_fds=(file.fileno(), options.fileno(), *descriptors),
            start_new_session=True,
        )


async def end(process: subprocess.Popen[bytes]) -> int:
    """Wait shortly for the end of a process that has closed the connection. Return the exit code."""
    with suppress(subprocess.TimeoutExpired):
        return await asyncio.to_thread(process.wait, OWN_EXIT_LIMIT_S)
    return await stop(process)


async def stop(process: subprocess.Popen[bytes]) -> int:
    """Kill bubblewrap, with which all processes of the sandbox end. Return the exit code."""
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        return await asyncio.to_thread(process.wait, EXIT_LIMIT_S)
    return -9


def _terminated(arguments: Sequence[str]) -> bytes:
    return b"".join(argument.encode() + b"\0" for argument in arguments)


def _file(content: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
    file.write(content)
    file.seek(0)
    return file
