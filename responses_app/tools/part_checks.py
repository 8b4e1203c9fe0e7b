"""Checks of the parts that only some requests need: the storage of files, and the runners of the sandbox. Repeated in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from django.conf import settings

from responses_app.installation.data_dir import MANAGE
from responses_app.observability import events
from responses_app.sandbox.base import SandboxError
from responses_app.sandbox.client import SandboxClient
from responses_app.store.db import call_in_thread
from responses_app.store.files.storage_check import storage_problem
from responses_app.tools import sandbox_access

logger = logging.getLogger("responses.health")

CHECK_EVERY_S: Final = 10.0
ANSWER_LIMIT_S: Final = 5.0
FILES, SANDBOX = "files", "sandbox"
SILENT: Final = "No answer within {:.0f} s."

# Part -> sentence for the log and for operators, of the parts that did not work at the last check.
problems: Final[dict[str, str]] = {}


class RepeatedCheck:
    """Check with a time limit. While a call hangs no other one begins, as threads would pile up at a folder that hangs."""

    def __init__(self, check: Callable[[], Awaitable[str]]) -> None:
        self._check = check
        self._call: asyncio.Future[str] | None = None

    async def run(self) -> str:
        """Return a sentence about the problem, or an empty text.

        The answer of a call that ended late is left out: with it, each check of a slow storage would log a change.
        """
        if self._call is not None and self._call.done():
            await asyncio.gather(self._call, return_exceptions=True)
            self._call = None
        self._call = self._call or asyncio.ensure_future(self._check())
        await asyncio.wait({self._call}, timeout=ANSWER_LIMIT_S)
        if not self._call.done():
            return SILENT.format(ANSWER_LIMIT_S)
        call, self._call = self._call, None
        try:
            return call.result()
        except Exception as error:
            # It would end the upkeep of the process.
            logger.exception("the check of a part")
            return f"The check fails ({type(error).__name__})."

    def cancel(self) -> None:
        """Stop waiting for a call that hangs."""
        if self._call is not None:
            self._call.cancel()


async def check_parts() -> None:
    """Check all parts until cancelled; note, log and report the problems."""
    checks = {FILES: RepeatedCheck(_files_problem), SANDBOX: RepeatedCheck(_sandbox_problem)}
    # The first request that needs the sandbox would wait for the trial run, which takes up to a second.
    trial = asyncio.create_task(asyncio.to_thread(sandbox_access.sandbox_problem))
    try:
        while True:
            for part, check in checks.items():
                _note(part, await check.run())
            events.parts_checked({part: part not in problems for part in checks})
            await asyncio.sleep(CHECK_EVERY_S)
    finally:
        trial.cancel()
        for check in checks.values():
            check.cancel()
        problems.clear()


def sandbox_urls() -> dict[str, str]:
    """Return the addresses of runners elsewhere by the name of the setting."""
    urls = {name: str(getattr(settings, name)) for name in ("RESPONSES_SANDBOX_URL", "RESPONSES_SANDBOX_READER_URL")}
    return {name: url for name, url in urls.items() if url and not url.startswith("unix:")}


async def runner_problem(url: str) -> str:
    """Return why the runner at `url` refuses the token or does not answer; empty if it serves."""
    client = SandboxClient(url, settings.RESPONSES_SANDBOX_TOKEN)
    try:
        await client.check()
    except SandboxError as error:
        return str(error)
    finally:
        await client.close()
    return ""


def _note(part: str, problem: str) -> None:
    if problem != problems.get(part, ""):
        if problem:
            logger.warning("%s: %s", part, problem)
        else:
            logger.warning("%s: works again", part)
    problems.pop(part, None)
    if problem:
        problems[part] = problem


async def _files_problem() -> str:
    return await call_in_thread(storage_problem) or ""


async def _sandbox_problem() -> str:
    if reason := await asyncio.to_thread(sandbox_access.start_failure):
        return f"The sandbox does not start, so code and files are refused: {reason}"
    for name, url in sandbox_urls().items():
        if problem := await runner_problem(url):
            return f"{name} is {url}, so code and files are refused: {problem}. `{MANAGE} doctor` checks the setting."
    return ""
