"""Runs of code: variables, values, output, tracebacks, files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from responses_app.sandbox.base import ContainerExpired, SandboxEnded, SandboxError, WorkFile
from responses_app.sandbox.client import SandboxClient
from responses_app.sandbox.launch.launcher import RUNNER
from tests.support.sandbox.runner import Runner, runner

# Sends a message with an impossible length in place of the interpreter.
DISTURBING = """
import os
for descriptor in range(3, 50):
    try:
        os.write(descriptor, b'R' + b'\\xff' * 8)
    except OSError:
        pass
"""


def test_variables_last_from_run_to_run(sandbox: Runner) -> None:
    first, second = sandbox.run("variables", "x = 41", "x + 1")
    assert (first.value, second.value) == (None, "42")


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", "2"),
        ("x = 1", None),
        ("None", None),
        ("'a'", "'a'"),
        ("def f():\n    return 5\nf()", "5"),
        ("", None),
        ("# nothing", None),
        ("for i in range(2): i", None),
        ("7; 8", "8"),
    ],
)
def test_last_expression_is_the_value(sandbox: Runner, code: str, value: str | None) -> None:
    (result,) = sandbox.run("value", code)
    assert (result.value, result.error) == (value, None)


def test_output_has_streams_and_order(sandbox: Runner) -> None:
    code = "import sys, subprocess\nprint('a')\nprint('b', file=sys.stderr)\nsubprocess.run(['echo', 'c'])\nNone"
    (result,) = sandbox.run("output", code)
    assert (result.stdout, result.stderr) == ("a\nc\n", "b\n")
    assert sorted(result.logs.split()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("1/0", 'Traceback (most recent call last):\n  File "<code 1>", line 1, in <module>\n    1/0\n    ~^~\n'),
        ("def f():\n    raise KeyError('k')\nf()", "in f\n    raise KeyError"),
        ("x = (", "SyntaxError: '(' was never closed"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "E: <exception str() failed>"),
        ("class R:\n    def __repr__(self): raise ValueError('no repr')\nR()", "ValueError: no repr"),
        ("b = bytearray(64 << 30)", "MemoryError"),
        ("input()", "EOFError"),
    ],
)
def test_exceptions_are_tracebacks_and_variables_stay(sandbox: Runner, code: str, error: str) -> None:
    first, second = sandbox.run("errors", code, "1")
    assert first.error is not None
    assert error in first.error
    assert "interpreter.py" not in first.error
    assert not first.was_killed
    assert second.value == "1"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import os; os.kill(os.getpid(), 11)", "The interpreter ended with SIGSEGV."),
        ("import os; os._exit(0)", "The code ended the interpreter."),
        ("import os; os.closerange(3, 100)", "The code ended the interpreter."),
        (DISTURBING, "The code disturbed the interpreter."),
    ],
)
def test_lost_interpreters_are_started_again(sandbox: Runner, code: str, error: str) -> None:
    _, lost, second = sandbox.run("lost", "x = 1", code, "'x' in globals()")
    assert lost.was_killed
    assert str(lost.error).startswith(error)
    assert "all variables are lost" in str(lost.error)
    assert second.value == "False"


def test_forked_processes_do_not_answer(sandbox: Runner) -> None:
    result, second = sandbox.run("fork", "import os\npid = os.fork()\n'child' if pid == 0 else 'parent'", "1")
    assert (result.value, second.value) == ("'parent'", "1")


def test_output_is_sent_as_the_code_writes(sandbox: Runner) -> None:
    async def work(client: SandboxClient) -> str:
        await client.create("stream")
        printed = asyncio.Event()
        code = "import os\nprint('first')\nwhile not os.path.exists('gate'): pass\nprint('second')"
        run = asyncio.create_task(client.run("stream", code, lambda _stream, _text: printed.set()))
        await printed.wait()
        await client.put_file("stream", "gate", b"")
        result = await run
        await client.delete("stream")
        return result.logs

    assert sandbox.use(work) == "first\nsecond\n"


def test_new_and_changed_files_are_results(sandbox: Runner) -> None:
    code = "import os\nos.makedirs('d', exist_ok=True)\nopen('/mnt/data/d/a.txt', 'w').write('hello')\nNone"
    first, second, third = sandbox.run("files", code, "1", "_ = open('d/a.txt', 'a').write('!')")
    assert first.files == (WorkFile("/mnt/data/d/a.txt", 5),)
    assert second.files == ()
    assert third.files == (WorkFile("/mnt/data/d/a.txt", 6),)


def test_files_can_be_written_read_and_deleted(sandbox: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        await client.create("put")
        content = bytes(range(256)) * 5000
        written = await client.put_file("put", "sub/x.bin", content)
        assert written == WorkFile("/mnt/data/sub/x.bin", len(content))
        assert b"".join([chunk async for chunk in client.read_file("put", "/mnt/data/sub/x.bin")]) == content
        assert (await client.run("put", "len(open('sub/x.bin', 'rb').read())")).value == str(len(content))
        await client.delete_file("put", "sub/x.bin")
        assert (await client.run("put", "import os; os.listdir('sub')")).value == "[]"
        await client.delete("put")

    sandbox.use(work)


def test_unknown_containers_have_expired(sandbox: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        with pytest.raises(ContainerExpired, match="has expired or was deleted"):
            await client.run("never", "1")
        with pytest.raises(ContainerExpired):
            await client.status("never")
        await client.delete("never")

    sandbox.use(work)


@pytest.mark.parametrize(("container_id", "memory"), [("a/b", "1g"), ("x", "2g"), ("", "1g")])
def test_invalid_containers_are_refused(sandbox: Runner, container_id: str, memory: str) -> None:
    async def work(client: SandboxClient) -> None:
        with pytest.raises(SandboxError):
            await client.create(container_id, memory)

    sandbox.use(work)


@pytest.mark.parametrize(
    "code",
    [
        "raise ValueError('emoji \\ud83d\\ude00 cut to \\ud83d')",
        "class Cell:\n    def __repr__(self): return 'cut to \\ud83d'\nCell()",
        "raise SystemExit('cut to \\ud83d')",
        "print('cut to \\ud83d')",
    ],
)
def test_half_of_a_character_in_a_result_is_a_question_mark(sandbox: Runner, code: str) -> None:
    (result,) = sandbox.run("half", code)
    assert f"{result.value}{result.error}{result.logs}".replace("None", "").strip().endswith("cut to ?")


def test_terminated_runner_ends_soon_with_the_code_that_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with runner(tmp_path) as started:

        async def work(client: SandboxClient) -> None:
            await client.create("endless")
            printed = asyncio.Event()
            run = asyncio.create_task(client.run("endless", "print(1)\nwhile True: pass", lambda *_: printed.set()))
            await printed.wait()
            processes = psutil.Process(started.process.pid).children(recursive=True)
            # Those of bubblewrap have the name among their arguments too.
            next(process for process in processes if "python" in process.name() and RUNNER in process.cmdline()).terminate()
            with pytest.raises(SandboxEnded):
                await asyncio.wait_for(run, 30)

        started.use(work)
        started.process.wait(30)
    assert "Traceback" not in capfd.readouterr().err
