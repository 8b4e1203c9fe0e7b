"""The program of a worker process: `python -m responses_app.workers.child MODULE:FUNCTION PARENT_PID MEMORY_BYTES`.

It reads requests from the socket that is its standard input, and calls FUNCTION(bytes) -> bytes for each of them.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from responses_app.workers import protocol

PR_SET_PDEATHSIG = 1
NICENESS = 10
# The kernel ends a worker before any other process of the server when memory runs out.
OOM_SCORE = 800
LONGEST_TRACEBACK = 8192


def main(target: str, parent: int, memory_bytes: int) -> None:
    """Serve requests until the other end of the socket is closed."""
    _die_with(parent)
    connection = _take_standard_input()
    try:
        function = _load(target)
        _limit_memory(memory_bytes)
    except Exception:
        protocol.send(connection, protocol.EXCEPTION, _last_traceback())
        return
    protocol.send(connection, protocol.READY, b"")
    with suppress(protocol.Ended, BrokenPipeError, ConnectionResetError):
        while True:
            _serve_one(connection, function)


def limit_cpu(seconds: int) -> None:
    """Have the kernel end this process when it has used so many more seconds of CPU time. The kernel counts whole seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


def _serve_one(connection: socket.socket, function: Callable[[bytes], bytes]) -> None:
    cpu_s, payload = protocol.receive(connection)
    limit_cpu(cpu_s)
    try:
        kind, reply = protocol.RESULT, function(payload)
    except Exception:
        kind, reply = protocol.EXCEPTION, _last_traceback()
    del payload
    protocol.send(connection, kind, reply)


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; at once, if the parent has ended already."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _take_standard_input() -> socket.socket:
    """The socket to the pool. Standard input becomes empty, so that no library reads requests."""
    connection = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return connection


def _load(target: str) -> Callable[[bytes], bytes]:
    module, _, name = target.partition(":")
    function: Callable[[bytes], bytes] = getattr(import_module(module), name)
    return function


def _limit_memory(memory_bytes: int) -> None:
    with suppress(OSError):
        os.nice(NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _last_traceback() -> bytes:
    return traceback.format_exc()[-LONGEST_TRACEBACK:].encode(errors="replace")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
