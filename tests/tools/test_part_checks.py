"""Repeated checks of the storage of files and of runners at addresses: noted, logged once, reported to observers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import pytest
from django.test import override_settings

from responses_app.observability import events
from responses_app.observability.events import Observer
from responses_app.sandbox.launch import problem
from responses_app.sandbox.runner.app import REFUSAL
from responses_app.tools import part_checks, sandbox_access
from tests.support.http_server import SilentHandler, serving
from tests.support.waiting import eventually


class TokenRunner(SilentHandler):
    """Runner with the token `right`."""

    def do_GET(self) -> None:
        is_right = self.headers["Authorization"] == "Bearer right"
        body = json.dumps({"status": "ok"} if is_right else {"code": "unavailable", "message": REFUSAL}).encode()
        self.send_response(200 if is_right else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class States(Observer):
    """Observer that keeps the last states."""

    def __init__(self) -> None:
        self.last: dict[str, bool] = {}

    def parts_checked(self, states: Mapping[str, bool]) -> None:
        self.last = dict(states)


@pytest.fixture
def url() -> Iterator[str]:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), TokenRunner)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}"


@asynccontextmanager
async def checking(files: mock.Mock) -> AsyncIterator[States]:
    """Check without pauses."""
    states = States()
    with (
        mock.patch.object(part_checks, "CHECK_EVERY_S", 0.01),
        mock.patch.object(part_checks, "storage_problem", files),
        mock.patch.object(sandbox_access, "start_failure", return_value=""),
        mock.patch.object(events, "_observers", [states]),
    ):
        task = asyncio.create_task(part_checks.check_parts())
        try:
            yield states
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def test_runner_that_refuses_the_token_is_noted_until_it_serves(url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        with override_settings(RESPONSES_SANDBOX_URL=url, RESPONSES_SANDBOX_READER_URL="", RESPONSES_SANDBOX_TOKEN="wrong"):
            async with checking(mock.Mock(return_value=None)) as states:
                await eventually(lambda: states.last == {"files": True, "sandbox": False})
                assert REFUSAL in part_checks.problems["sandbox"]
                with override_settings(RESPONSES_SANDBOX_TOKEN="right"):
                    await eventually(lambda: states.last == {"files": True, "sandbox": True})
                assert part_checks.problems == {}

    asyncio.run(main())
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["sandbox", "sandbox"], "once for each change"


def test_sandbox_is_tried_before_the_first_request_needs_it(tmp_path: Path) -> None:
    async def main() -> None:
        with override_settings(RESPONSES_SANDBOX_URL=f"unix:{tmp_path}/socket", RESPONSES_SANDBOX_READER_URL=""):
            async with checking(mock.Mock(return_value=None)):
                await eventually(lambda: problem.find_problem.cache_info().currsize == 1)

    problem.find_problem.cache_clear()
    asyncio.run(main())
    assert problem.find_problem.cache_info().misses == 1


def test_storage_that_hangs_is_asked_once_and_stops_no_other_check(url: str) -> None:
    hung = asyncio.Event()

    async def hang() -> str:
        calls.append(1)
        await hung.wait()
        return ""

    calls: list[int] = []

    async def main() -> None:
        with (
            override_settings(RESPONSES_SANDBOX_URL=url, RESPONSES_SANDBOX_READER_URL="", RESPONSES_SANDBOX_TOKEN="right"),
            mock.patch.object(part_checks, "_files_problem", hang),
            mock.patch.object(part_checks, "ANSWER_LIMIT_S", 0.01),
        ):
            async with checking(mock.Mock()) as states:
                await eventually(lambda: states.last == {"files": False, "sandbox": True})
                states.last = {}
                await eventually(lambda: states.last == {"files": False, "sandbox": True})
                assert len(calls) == 1
                hung.set()
                await eventually(lambda: states.last == {"files": True, "sandbox": True})

    asyncio.run(main())


def test_late_answers_leave_the_problem_until_an_answer_in_time() -> None:
    calls: list[asyncio.Future[str]] = []

    def begin() -> asyncio.Future[str]:
        calls.append(asyncio.get_running_loop().create_future())
        return calls[-1]

    async def main() -> None:
        check = part_checks.RepeatedCheck(begin)
        with mock.patch.object(part_checks, "ANSWER_LIMIT_S", 0.01):
            silent = await check.run()
            assert silent.startswith("No answer within")
            calls[0].set_result("")
            assert await check.run() == silent
            calls[1].set_exception(OSError("gone"))
            assert await check.run() == silent
        calls[2].set_result("")
        answer = asyncio.ensure_future(check.run())
        await eventually(lambda: len(calls) == 4)
        calls[3].set_result("")
        assert await answer == ""

    asyncio.run(main())


def test_check_that_raises_an_error_stops_no_later_check(url: str) -> None:
    check = mock.Mock(side_effect=OSError("gone"))

    async def main() -> None:
        with override_settings(RESPONSES_SANDBOX_URL=url, RESPONSES_SANDBOX_READER_URL="", RESPONSES_SANDBOX_TOKEN="right"):
            async with checking(check) as states:
                await eventually(lambda: states.last == {"files": False, "sandbox": True})
                assert part_checks.problems["files"] == "The check fails (OSError)."
                check.side_effect, check.return_value = None, None
                await eventually(lambda: states.last == {"files": True, "sandbox": True})

    asyncio.run(main())
