"""The same demands on a real `vllm serve`, and the end of its processes with their owner."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from responses_app.engines import guard, open_engine
from responses_app.engines.border import BadPrompt, Constraint, EngineDown
from responses_app.engines.remote import Remote
from tests.engines import cases, checkpoint
from tests.engines.listening import ask, cached, hear, tokens

pytestmark = [pytest.mark.engine, pytest.mark.timeout(240)]

TOKENIZER = checkpoint.tokenizer()
EOS = TOKENIZER.eos_token_id

# The server adopts its children and becomes vLLM: pid and start time, hence the mark, stay what they were.
SERVER = "import os, sys; from responses_app.engines import guard; guard.adopt(); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
QUIET = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}


@pytest.fixture(scope="module")
def server(tiny: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    vllm = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(tiny), "--served-model-name", "tiny"]
    options = ["--enforce-eager", "--enable-scale-out", "--enable-prompt-tokens-details", "--scheduling-policy", "priority"]
    command = [sys.executable, "-c", SERVER, *vllm[1:], *options, "--host", "127.0.0.1", "--port", port]
    process = subprocess.Popen(command, env=os.environ | QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield process, f"http://127.0.0.1:{port}?priority=1"
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def engine(runner: asyncio.Runner, server: tuple[subprocess.Popen[bytes], str]) -> Iterator[Remote]:
    process, url = server
    engine = open_engine(url)
    assert isinstance(engine, Remote)
    while True:
        assert process.poll() is None, "vllm serve has ended"
        try:
            runner.run(engine.start())
            break
        except EngineDown:
            time.sleep(0.5)
    yield engine
    runner.run(engine.close())


def requests_running(engine: Remote) -> float:
    metrics = httpx2.get(f"{engine.base}/metrics").text
    return float(re.findall(r"^vllm:num_requests_running\{.*\} (\S+)", metrics, re.MULTILINE)[0])


def test_it_learns_what_is_served(engine: Remote, tiny: Path) -> None:
    assert (engine.model, engine.root, engine.max_model_len) == ("tiny", str(tiny), checkpoint.MAX_MODEL_LEN)


def test_it_generates_as_many_tokens_as_asked_for(runner: asyncio.Runner, engine: Remote) -> None:
    chunks = runner.run(hear(engine, ask(max_tokens=12, sampling={"ignore_eos": True})))
    assert len(tokens(chunks)) == 12
    assert [chunk.finish for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]


def test_it_includes_the_stop_token_that_ended_it(runner: asyncio.Runner, engine: Remote) -> None:
    greedy = tokens(runner.run(hear(engine, ask(sampling={"temperature": 0.0}))))
    stopped = runner.run(hear(engine, ask(sampling={"temperature": 0.0, "stop_token_ids": [greedy[0]]})))
    assert (tokens(stopped), stopped[-1].finish) == ([greedy[0]], "stop")


@pytest.mark.parametrize("name", cases.CONSTRAINTS)
def test_it_keeps_to_the_constraint_from_the_first_token(runner: asyncio.Runner, engine: Remote, name: str) -> None:
    constraint, pattern = cases.CONSTRAINTS[name]
    *said, last = tokens(runner.run(hear(engine, ask(max_tokens=200, constraint=constraint))))
    assert last == EOS
    assert re.fullmatch(pattern, TOKENIZER.decode(said))


@pytest.mark.parametrize("name", cases.BAD)
def test_it_refuses_what_cannot_be_done(runner: asyncio.Runner, engine: Remote, name: str) -> None:
    with pytest.raises(BadPrompt):
        runner.run(hear(engine, ask(**cases.BAD[name])))


def test_it_tells_log_probabilities_best_first(runner: asyncio.Runner, engine: Remote) -> None:
    chunks = runner.run(hear(engine, ask(max_tokens=3, sampling={"logprobs": 3, "ignore_eos": True})))
    entries = [entry for chunk in chunks for entry in chunk.logprobs]
    assert [entry.token for entry in entries] == tokens(chunks)
    for entry in entries:
        values = [value for _, value in entry.top]
        assert len(values) == 3
        assert values == sorted(values, reverse=True)
        assert entry.logprob <= values[0] <= 0.0


def test_it_tells_how_much_of_the_prompt_was_cached(runner: asyncio.Runner, engine: Remote) -> None:
    async def main() -> list[int | None]:
        return [cached(await hear(engine, ask([9] * 300, 1, cache_salt=salt))) for salt in (None, None, "mine")]

    first, again, salted = runner.run(main())
    assert (first, salted) == (0, 0)
    assert again is not None
    assert again >= 128


def test_it_takes_priorities(runner: asyncio.Runner, engine: Remote) -> None:
    assert len(tokens(runner.run(hear(engine, ask(priority=-5, max_tokens=1))))) == 1


def test_it_stops_the_engine_within_two_seconds(runner: asyncio.Runner, engine: Remote) -> None:
    async def main() -> float:
        chunks = engine.generate(ask(max_tokens=500, sampling={"ignore_eos": True}))
        heard = tokens([await anext(chunks)])
        assert requests_running(engine) == 1
        await chunks.aclose()
        assert len(heard) < 100
        return time.monotonic()

    closed = runner.run(main())
    while requests_running(engine):
        assert time.monotonic() - closed < 2
        runner.run(asyncio.sleep(0.05))


def test_it_carries_on_beside_an_unfinished_request(runner: asyncio.Runner, engine: Remote) -> None:
    async def main() -> list[int]:
        held = engine.generate(ask(max_tokens=400, constraint=Constraint("regex", "a{300}")))
        await anext(held)
        heard = await asyncio.gather(*(hear(engine, ask(max_tokens=5, sampling={"ignore_eos": True})) for _ in range(20)))
        await held.aclose()
        return [len(tokens(chunks)) for chunks in heard]

    assert runner.run(main()) == [5] * 20


def test_it_tells_when_the_server_dies_and_leaves_none_of_its_processes(
    runner: asyncio.Runner, engine: Remote, server: tuple[subprocess.Popen[bytes], str]
) -> None:
    """The last test of the module: nobody serves the next."""
    process, _ = server

    async def main() -> None:
        chunks = engine.generate(ask(max_tokens=500, sampling={"ignore_eos": True}))
        await anext(chunks)
        process.send_signal(signal.SIGKILL)
        with pytest.raises(EngineDown):
            async for _ in chunks:
                pass
        assert not await engine.alive()
        with pytest.raises(EngineDown):
            await hear(engine, ask())

    before = guard.survivors(process.pid)
    titles = {Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0].strip() for pid in before}
    assert {"VLLM::EngineCore", "VLLM::Worker"} <= titles
    runner.run(main())
    began = time.monotonic()
    while guard.survivors(process.pid):
        assert time.monotonic() - began < 15, "an idle machine takes little more than one second"
        time.sleep(0.05)
