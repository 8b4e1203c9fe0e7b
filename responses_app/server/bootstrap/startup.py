"""The first steps of every process that serves: its loop, its engines, and what is settled once they are up."""

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
from responses_app.server.processes.log_redirect import redirect_output, tail

if TYPE_CHECKING:
    from responses_app.server.processes.lifecycle import ServerLifecycle

# Events are made and dropped by the thousand, hardly any in a cycle: Python's own 700 would have the collector run all the time.
GC_THRESHOLDS = (20_000, 20, 50)
EXIT_LIMIT = 3.0
# How long a thread that computes keeps Python to itself, in seconds. A request waits for that at each of some twenty steps.
THREAD_SWITCH_S = 0.0001


class CannotStart(Exception):
    """The database or an engine is not there; the message says why."""


def reactor() -> asyncio.AbstractEventLoop:
    """Install Twisted's asyncio reactor on a uvloop: Daphne takes whatever reactor it finds, or else a slower loop."""
    import uvloop
    from twisted.internet import asyncioreactor

    sys.setswitchinterval(THREAD_SWITCH_S)
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    asyncioreactor.install(loop)

    from responses_app.server.http import twisted_log

    twisted_log.begin()
    return loop


def start(life: ServerLifecycle, log: Path) -> bool:
    """Start the engines, whose words go to `log`; False if a signal came first. Raises CannotStart."""
    with redirect_output(log):
        try:
            return life.start() and _settle()
        except Exception as error:
            # Anything at all: a model brings its own code and its own ways to fail.
            traceback.print_exc()
            reason = f"the engine did not start: {error}"
    raise CannotStart(f"{reason}\nThe end of {log}:\n{tail(log)}")


def exit_now(code: int) -> None:
    """Exit, even if a thread of some library does not want to end."""
    logging.shutdown()
    timer = threading.Timer(EXIT_LIMIT, os._exit, (code,))
    timer.daemon = True
    timer.start()
    sys.exit(code)


def _settle() -> bool:
    """What has been made up to here, a million objects of vLLM's, stays: the garbage collector need not look at it again."""
    escape_all_handlers()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    return True
