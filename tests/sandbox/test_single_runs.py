"""Single runs: a module with the packages of the server, limits, and no way out."""

from __future__ import annotations

import asyncio
import errno
import signal
import subprocess
from collections.abc import AsyncIterator
from unittest.mock import Mock

import pytest

from responses_app.sandbox.base import OnceLimits, OnceResult, SandboxUnavailable
from responses_app.sandbox.client import SandboxClient
from responses_app.sandbox.runner import process_table
from responses_app.sandbox.runner.single_runs import _Exchange
from tests.support.sandbox.runner import Runner
from tests.support.waiting import LIMIT_S

SMALL = OnceLimits(wall_s=2, memory_mib=256, output_bytes=1000)


def run_module(sandbox: Runner, module: str, stdin: bytes, limits: OnceLimits, *arguments: str) -> OnceResult:
    async def work(client: SandboxClient) -> OnceResult:
        return await client.run_once(module, stdin, limits, arguments)

    return sandbox.use(work)


def test_module_reads_stdin_and_writes_stdout(sandbox: Runner) -> None:
    result = run_module(sandbox, "base64", b"x" * 2_000_000, OnceLimits(), "-e", "-")
    assert (result.exit_code, result.problem, result.stderr) == (0, None, "")
    assert len(result.stdout) > 2_600_000


def test_module_sees_the_packages_of_the_server(sandbox: Runner) -> None:
    code = b"import pydantic, responses_app.sandbox.base, os; print(os.getuid())\n"
    result = run_module(sandbox, "code", code, OnceLimits(), "-q")
    assert "Error" not in result.stderr
    assert b"65534" in result.stdout


def test_input_that_is_not_read_is_dropped(sandbox: Runner) -> None:
    result = run_module(sandbox, "this", b"x" * 5_000_000, OnceLimits())
    assert result.exit_code == 0
    assert b"Beautiful" in result.stdout


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("while True: pass\n", "more than 2 seconds"),
        ("while True: print('x' * 100)\n", "more than 1000 bytes of output"),
        ("import os; os.abort()", None),
        ("b = bytearray(1 << 30)", None),
        ("import socket; socket.create_connection(('1.1.1.1', 53), 1)", None),
        ("open('/x', 'w')", None),
    ],
)
@pytest.mark.slow
def test_limits_end_a_single_run(sandbox: Runner, code: str, problem: str | None) -> None:
    result = run_module(sandbox, "timeit", b"", SMALL, "-n", "1", "-r", "1", code)
    assert result.problem == problem
    assert result.exit_code != 0


async def no_input() -> AsyncIterator[bytes]:
    for part in (b"",):
        yield part


def test_run_whose_memory_cannot_be_read_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def end(exchange: _Exchange) -> None:
        with pytest.raises(SandboxUnavailable, match=r"cannot be read: .*Too many open files"):
            await exchange.run(no_input(), LIMIT_S, 64)
        assert await exchange.close() == -signal.SIGKILL

    monkeypatch.setattr(process_table, "memory_in_use_now", Mock(side_effect=OSError(errno.EMFILE, "Too many open files")))
    with subprocess.Popen(["sleep", "60"], stdin=-1, stdout=-1, stderr=-1) as process:
        asyncio.run(end(_Exchange(process, 1000)))
