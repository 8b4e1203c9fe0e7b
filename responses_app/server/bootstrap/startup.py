"""First steps of a serving process: event loop, engines, garbage collector settings."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from responses_app.log_format import escape_all_handlers
from responses_app.runs.garbage import THRESHOLDS
from responses_app.server.processes.log_redirect import redirect_output, tail

if TYPE_CHECKING:
    from responses_app.server.processes.lifecycle import ServerLifecycle

EXIT_LIMIT = 3.0
# Switch interval of Python's threads in seconds. A request waits so long for a busy thread at each of about twenty steps.
THREAD_SWITCH_S = 0.0001


class CannotStart(Exception):
    """Failure of a start; the message names the database or the engine and the reason."""


def reactor() -> asyncio.AbstractEventLoop:
    """Install Twisted's asyncio reactor on uvloop, before Daphne installs a slower reactor."""
    import uvloop
    from twisted.internet import asyncioreactor

    sys.setswitchinterval(THREAD_SWITCH_S)
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    asyncioreactor.install(loop)

    from responses_app.server.http import twisted_log

    twisted_log.install()
    return loop


def start(life: ServerLifecycle, log: Path) -> bool:
    """Start the engines with output to `log`. Return False after a signal. Raises CannotStart."""
    with redirect_output(log):
        try:
            return life.start() and _settle()
        except Exception as error:
            # Any exception: a model's own code can fail in any way.
            traceback.print_exc()
            reason = f"the engine did not start: {error}"
    raise CannotStart(f"{reason}\nThe end of {log}:\n{tail(log)}")


def exit_now(code: int) -> None:
    """Exit without waiting for threads of libraries."""
    logging.shutdown()
    timer = threading.Timer(EXIT_LIMIT, os._exit, (code,))
    timer.daemon = True
    timer.start()
    sys.exit(code)


def _settle() -> bool:
    """Exclude all objects made so far, about a million of vLLM's, from garbage collection."""
    escape_all_handlers()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    return True
