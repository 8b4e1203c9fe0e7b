"""The worker process of the compiler pool: reads jobs from a socket, and keeps limits on its own time and memory.

The kernel ends it with SIGXCPU when a job takes too much computing time. The parent starts another one.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from responses_app.compiler.jobs import CONVERSIONS, MEMORY_BYTES
from responses_app.compiler.xgrammars import Compiler
from responses_app.dialects import grammars, larks
from responses_app.server.process import die_with_parent

# Streams of other clients come first; a busy machine still gives it a share.
NICE = 5
# A worker whose memory has grown to this ends after its job, and another one takes its place.
LARGE_BYTES = MEMORY_BYTES // 2
# What xgrammar puts before its messages: the time, and the line of its source.
_SOURCE = re.compile(r"^.*\.cc:\d+: ", re.DOTALL)


class Worker:
    """Does one job after the other until the socket is closed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._compiler: Compiler | None = None

    def run(self) -> None:
        """Say that it is ready, then answer each job."""
        self._say({"ready": True})
        while True:
            try:
                job = json.loads(self._connection.recv_bytes())
            except EOFError:
                return
            _limit_cpu(job["cpu_s"])
            self._say(self._answer(job))
            if _resident_bytes() > LARGE_BYTES:
                return

    def _answer(self, job: dict[str, Any]) -> dict[str, Any]:
        try:
            if job["kind"] in CONVERSIONS:
                return {"text": grammars.convert(job["kind"].removesuffix("_to_ebnf"), job["text"])}
            self._compiler = self._compiler or Compiler()
            self._compiler.compile(job["kind"], job["text"])
            return {"text": ""}
        except grammars.BadGrammar as error:
            return {"refusal": str(error)}
        except MemoryError:
            return {"refusal": f"compiling it takes more than {MEMORY_BYTES >> 20} MiB of memory"}
        except Exception as error:  # Compilers in native code raise what they like; whatever it is, the input was refused.
            return {"refusal": " ".join(_SOURCE.sub("", str(error)).split()) or type(error).__name__}

    def _say(self, answer: dict[str, Any]) -> None:
        self._connection.send_bytes(json.dumps(answer).encode())


def _limit_cpu(seconds: int) -> None:
    """Have the kernel end this process once it has computed for so many seconds more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + 1, hard))


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(descriptor: int, parent: int) -> None:
    """Work for the process that holds the other end of the socket, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the socket.
    die_with_parent(parent, signal.SIGKILL)
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection = Connection(descriptor)
    try:
        larks.prepare()
        Worker(connection).run()
    except (BrokenPipeError, ConnectionResetError):
        pass
    except Exception:
        connection.send_bytes(json.dumps({"failure": traceback.format_exc()}).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
