"""The compiler pool: what exceeds a limit is refused, other projects are served meanwhile, and no process is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from responses_app.compiler import pool as pools
from responses_app.compiler.jobs import CONVERSION_CPU_S, WALL_FACTOR, Job
from responses_app.compiler.pool import Overloaded, Pool, Refused

# Templates that make new rules of themselves without an end.
ENDLESS = 'start: a{b}\na{x}: a{a{x}}\nb: "x"'
LIMIT_S = CONVERSION_CPU_S * WALL_FACTOR + 60


def lark(definition: str) -> Job:
    return Job("lark_to_ebnf", definition)


def endless(number: int) -> Job:
    return lark(f"// {number}\n{ENDLESS}")


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 30
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, f"{pids} are still there"
        time.sleep(0.05)


def test_a_result_and_a_refusal_are_given_to_everybody_who_asks_and_kept(pool: Pool) -> None:
    async def ask() -> None:
        good, bad = lark('start: "a"'), lark("start:(")
        results = await asyncio.gather(*(pool.run(f"p{n}", good) for n in range(5)))
        assert set(results) == {'root ::= r0\nr0 ::= t0\nt0 ::= "a"'}
        for _ in range(2):
            with pytest.raises(Refused, match="cannot be read"):
                await pool.run("p", bad)

    asyncio.run(ask())
    before = pool.pids()
    pool.close()
    until_gone(before)
    # Out of the cache: nothing is started for it.
    assert asyncio.run(pool.run("q", lark('start: "a"')))
    assert pool.pids() == []


def test_what_computes_too_long_is_refused_and_the_next_job_is_done(pool: Pool) -> None:
    async def ask() -> None:
        with pytest.raises(Refused, match=r"more than \d+ (seconds|MiB)"):
            await pool.run("p", endless(0))
        assert await pool.run("p", lark('start: "b"'))

    began = time.monotonic()
    asyncio.run(asyncio.wait_for(ask(), LIMIT_S))
    began = time.monotonic()
    with pytest.raises(Refused):
        asyncio.run(pool.run("p", endless(0)))
    assert time.monotonic() - began < 1, "the refusal was not kept"


def test_a_project_does_not_wait_for_the_queue_of_another(pool: Pool) -> None:
    async def ask() -> None:
        await asyncio.gather(*(pool.run("q", lark(f'start: "{n}"')) for n in range(2)))
        attacks = [asyncio.create_task(pool.run("p", endless(n))) for n in range(1, 9)]
        while len(pool.pids()) < 2:
            await asyncio.sleep(0.01)
        for n in range(10, 20):
            assert await pool.run("q", lark(f'start: "{n}"'))
        assert sum(one.done() for one in attacks) < 4, "all of it was compiled first"
        for one in attacks:
            one.cancel()
        await asyncio.wait(attacks)

    asyncio.run(asyncio.wait_for(ask(), LIMIT_S))


def test_a_queue_has_an_end(pool: Pool) -> None:
    async def ask() -> None:
        waiting = [asyncio.create_task(pool.run("p", endless(n))) for n in range(pools.MOST_WAITING + 2)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="Try again"):
            await pool.run("p", endless(10_000))
        for one in waiting:
            one.cancel()
        await asyncio.wait(waiting)

    asyncio.run(asyncio.wait_for(ask(), LIMIT_S))


def test_a_process_that_was_killed_is_replaced(pool: Pool) -> None:
    asyncio.run(pool.run("p", lark('start: "a"')))
    for pid in pool.pids():
        os.kill(pid, signal.SIGKILL)
    assert asyncio.run(pool.run("p", lark('start: "b"')))


def test_a_schema_is_compiled_without_torch(pool: Pool) -> None:
    pytest.importorskip("xgrammar")
    tag = '{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {"type": "string", "pattern": "%s"}}}'
    assert asyncio.run(pool.run("p", Job("structural_tag", tag % "^a+$"))) == ""
    with pytest.raises(Refused):
        asyncio.run(pool.run("p", Job("structural_tag", tag % "[")))
    loaded = [Path(f"/proc/{pid}/maps").read_text() for pid in pool.pids()]
    assert any("xgrammar" in maps for maps in loaded)
    assert not any("libtorch" in maps for maps in loaded)


PARENT = """
import asyncio, sys
from responses_app.compiler.pool import shared
from responses_app.compiler.jobs import Job
asyncio.run(shared.run("p", Job("lark_to_ebnf", 'start: "a"')))
print(*shared.pids(), flush=True)
asyncio.run(shared.run("p", Job("lark_to_ebnf", sys.argv[1])))
"""


def test_no_process_outlives_a_server_that_was_killed() -> None:
    command = [sys.executable, "-c", PARENT, ENDLESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert pids
        parent.kill()
    until_gone(pids)
