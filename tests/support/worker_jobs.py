"""Jobs for worker processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

COUNT = 0


def handle(payload: bytes) -> bytes:
    """Run the job named by the first word of the payload."""
    name, _, argument = payload.partition(b" ")
    done = {
        b"echo": _echo,
        b"pid": _pid,
        b"spin": _spin,
        b"wait": _wait,
        b"memory": _memory,
        b"die": _die,
        b"fail": _fail,
        b"environ": _environ,
    }[name](argument)
    return done


def _echo(argument: bytes) -> bytes:
    return argument


def _pid(_: bytes) -> bytes:
    return str(os.getpid()).encode()


def _spin(_: bytes) -> bytes:
    while True:
        pass


def _wait(argument: bytes) -> bytes:
    """Write the process id to the file, then wait for a signal that ends the process."""
    Path(argument.decode()).write_text(str(os.getpid()))
    signal.pause()
    return b""


def _memory(argument: bytes) -> bytes:
    try:
        return str(len(bytearray(int(argument)))).encode()
    except MemoryError:
        return b"MemoryError"


def _die(_: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGSEGV)
    return b""


def _fail(_: bytes) -> bytes:
    raise ValueError("a bad job")


def _environ(_: bytes) -> bytes:
    return "\n".join(os.environ).encode()
