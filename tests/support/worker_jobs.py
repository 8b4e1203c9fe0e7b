"""Jobs for worker processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

COUNT = 0


def handle(payload: bytes) -> bytes:
    """Run the job named by the first word of the payload."""
    name, _, argument = payload.partition(b" ")
    done = {
        b"echo": _echo,
        b"pid": _pid,
        b"spin": _spin,
        b"sleep": _sleep,
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


def _sleep(argument: bytes) -> bytes:
    """Write the process id to the file, then sleep."""
    Path(argument.decode()).write_text(str(os.getpid()))
    time.sleep(60)
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
    raise ValueError("as it was told")


def _environ(_: bytes) -> bytes:
    return "\n".join(os.environ).encode()
