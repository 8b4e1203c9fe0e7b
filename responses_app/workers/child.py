"""Program of a worker process: `python -m responses_app.workers.child MODULE:FUNCTION PARENT_PID MEMORY_BYTES`.

The program reads requests from the socket on its standard input, and calls FUNCTION(bytes) -> bytes for each request.
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
# The out-of-memory killer prefers workers to all other processes of the server.
OOM_SCORE = 800
MAX_TRACEBACK = 8192


def main(target: str, parent: int, memory_bytes: int) -> None:
    """Serve requests until the peer closes the socket."""
    _die_with(parent)
    connection = _take_standard_input()
    try:
        function = _load(target)
        _limit_memory(memory_bytes)
    except Exception:
        protocol.send(connection, protocol.EXCEPTION, _last_traceback())
        return
    protocol.send(connection, protocol.READY, b"")
    with suppress(protocol.ConnectionClosed, BrokenPipeError, ConnectionResetError):
        while True:
            _serve_one(connection, function)


def limit_cpu(seconds: int) -> None:
    """Limit the further CPU time of the process to `seconds`, rounded up to whole seconds."""
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
    """Have the kernel kill the process when `parent` ends. Exit at once if `parent` has ended already."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _take_standard_input() -> socket.socket:
    """Return the socket to the pool. Standard input becomes empty, so no library can read requests."""
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
    return traceback.format_exc()[-MAX_TRACEBACK:].encode(errors="replace")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
