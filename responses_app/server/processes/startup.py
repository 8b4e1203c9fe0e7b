"""First steps of a serving process: event loop, engines, garbage collector settings."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from responses_app.engine_interface import EngineUnreachable
from responses_app.runs.garbage import THRESHOLDS
from responses_app.server.bootstrap.errors import CannotStart
from responses_app.server.bootstrap.log_redirect import ROOT_CAUSE, find_root_cause, redirect_output
from responses_app.utils.log_format import escape_all_handlers

if TYPE_CHECKING:
    from responses_app.server.processes.lifecycle import RunManagerLifecycle, ServerLifecycle

EXIT_LIMIT = 3.0
# Characters of an exception in a sentence; an engine may answer with a page of HTML.
MAX_REASON = 400
AWAY = "Start the engine first, or add model= and max_model_len= to its URL, and this server starts without it."
# Switch interval of Python's threads in seconds. A request waits so long for a busy thread at each of about twenty steps.
THREAD_SWITCH_S = 0.0001


def reactor() -> asyncio.AbstractEventLoop:
    """Install Twisted's asyncio reactor on uvloop, before Daphne installs a slower reactor."""
    # Before the imports, of which the garbage collector would take a seventh of the time.
    gc.set_threshold(*THRESHOLDS)
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
    with _logged(log):
        _prevent_torch_import()
        return life.start() and settle()


async def start_while_serving(hub: RunManagerLifecycle, log: Path) -> None:
    """Start the engines of a server that listens already, with output to `log`. Raises CannotStart."""
    with _logged(log):
        _prevent_torch_import()
        await hub.start()
        settle()


def _prevent_torch_import() -> None:
    """Save the memory of PyTorch, unless an engine runs in this process."""
    from responses_app.dialects.torch_import import prevent_torch_import
    from responses_app.engines.vllm.inprocess import InProcessVllm
    from responses_app.runs import manager

    models = manager.current().served.values()
    if not any(isinstance(model.engine, InProcessVllm) for model in models):
        prevent_torch_import((model.source, model.parsers.get("chat_template")) for model in models)


@contextmanager
def _logged(log: Path) -> Iterator[None]:
    """Redirect the output to `log`, and raise CannotStart with the name of the log for any exception."""
    with redirect_output(log):
        try:
            yield
            return
        except EngineUnreachable as error:
            raise CannotStart(f"the engine is away: {str(error).removesuffix('.')}. {AWAY}") from None
        except Exception as error:
            # Any exception: a model's own code can fail in any way.
            traceback.print_exc()
            cause = find_root_cause(log) if ROOT_CAUSE in str(error) else None
            reason = shorten(cause or str(error) or type(error).__name__, MAX_REASON, placeholder=" …")
    raise CannotStart(f"the engine did not start: {reason.rstrip('.')}. The log {log} has the traceback")


def exit_now(code: int) -> None:
    """Exit without waiting for threads of libraries, and without the end of the interpreter, at which libraries print leaks."""
    timer = threading.Timer(EXIT_LIMIT, os._exit, (code,))
    timer.daemon = True
    timer.start()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def settle() -> bool:
    """Exclude all objects made so far, about a million of vLLM's, from garbage collection.

    Without vLLM a collection before takes a seventh of the CPU time of the start, and finds a megabyte.
    """
    escape_all_handlers()
    if "vllm" in sys.modules:
        gc.collect()
    gc.freeze()
    return True
