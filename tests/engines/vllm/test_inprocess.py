"""vLLM in this process: the common requirements of engines, and the start and end of the processes."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest

from responses_app.engine_interface import Chunk, Constraint, Engine, EngineUnavailable, RequestRejected
from responses_app.engines import open_engine, orphan_guard
from responses_app.engines.socket.client import SocketEngine
from responses_app.engines.socket.host import EngineHost
from responses_app.engines.vllm import core_watch, server
from responses_app.engines.vllm.args import InvalidEngineOption
from responses_app.engines.vllm.inprocess import InProcessVllm
from responses_app.engines.vllm.socket_folder import PREFIX
from responses_app.utils import unix_socket
from tests.support.engines import constraints as cases
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.engines.image_requirements import ImageRequirements
from tests.support.engines.requirements import START_LIMIT_S, STOP_METHODS, EngineRequirements, Running
from tests.support.server.processes import left, process_identity
from tests.support.waiting import eventually, wait_until

# Ignore warnings from vLLM and torch.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def inductor_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of compiled Inductor code."""
    return tmp_path_factory.mktemp("inductor")


@pytest.fixture(scope="module")
def vllm(runner: asyncio.Runner, seeing: Path, inductor_cache: Path) -> Iterator[InProcessVllm]:
    orphan_guard.guard_children()
    engine = open_engine(f"vllm://{seeing}")
    assert isinstance(engine, InProcessVllm)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(inductor_cache))
        runner.run(engine.start())
        yield engine
        runner.run(engine.close())
    # Collect now, so that warnings about resources left open appear in this test.
    del engine
    gc.collect()


@pytest.fixture(scope="module")
def engine(vllm: InProcessVllm) -> InProcessVllm:
    return vllm


@pytest.fixture
def running(vllm: InProcessVllm) -> Running:
    return vllm.running


def processes() -> dict[str, int]:
    """Return the vLLM processes started by this process, as title -> pid."""
    titles = {_title(pid): pid for pid in orphan_guard.survivors(os.getpid())}
    return {title: pid for title, pid in titles.items() if title.startswith("VLLM::")}


def _title(pid: int) -> str:
    """Return the title of a process, empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0].strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def own_sockets() -> list[str]:
    """Return the paths of the Unix sockets of this process."""
    return [str(socket.laddr) for socket in psutil.Process().net_connections("unix") if socket.laddr]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_within(pid: int, window_s: float) -> float:
    """Return the CPU time that a process uses during the next `window_s` seconds."""
    before = cpu_seconds(pid)
    time.sleep(window_s)  # CPU time per real time is the subject; no event marks a process that does nothing.
    return cpu_seconds(pid) - before


class TestInprocessRequirements(EngineRequirements):
    """Common requirements of engines."""


class TestInprocessImages(ImageRequirements):
    """Common requirements of engines that accept images."""


class TestRequirementsOverSocket(EngineRequirements):
    """Common requirements of engines, for the client of a host of the same engine."""

    @pytest.fixture(scope="class")
    @classmethod
    def engine(
        cls, runner: asyncio.Runner, vllm: InProcessVllm, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[SocketEngine]:
        path = tmp_path_factory.mktemp("host") / "engine.sock"
        host, client = EngineHost(vllm), SocketEngine(str(path))
        runner.run(host.start(unix_socket.listen(path)))
        runner.run(client.start())
        yield client
        runner.run(client.close())
        runner.run(host.close())


def test_partly_enforceable_schema_is_refused(runner: asyncio.Runner, engine: InProcessVllm) -> None:
    with pytest.raises(RequestRejected, match="not supported"):
        runner.run(collect(engine, make_request(constraint=Constraint("json", {"type": "integer", "multipleOf": 3}))))


def test_first_logprobs_compile_nothing(runner: asyncio.Runner, engine: InProcessVllm, inductor_cache: Path) -> None:
    chunks = runner.run(collect(engine, make_request(max_tokens=2, sampling={"logprobs": 5})))
    assert any(chunk.logprobs for chunk in chunks)
    assert not any(inductor_cache.iterdir()), "Inductor has compiled something"


def test_requests_with_and_without_logprobs_answer_alike_side_by_side(runner: asyncio.Runner, engine: InProcessVllm) -> None:
    async def main() -> list[list[Chunk]]:
        return await asyncio.gather(
            *(
                collect(engine, make_request(id=f"side-{number}", max_tokens=20, sampling=sampling))
                for number, sampling in sides
            )
        )

    sides = list(enumerate([{"temperature": 0.0, "ignore_eos": True, **one} for one in ({}, {"logprobs": 1})] * 3))
    answers = runner.run(main())
    first, *others = [(tokens(chunks), chunks[0].prompt, chunks[-1].finish) for chunks in answers]
    assert len(first[0]) == 20
    assert others == [first] * 5
    assert [any(chunk.logprobs for chunk in chunks) for chunks in answers] == [False, True] * 3


def test_sockets_are_in_a_private_folder(engine: InProcessVllm) -> None:
    sockets = [Path(path) for path in own_sockets() if path.startswith(tempfile.gettempdir())]
    assert sockets
    assert {path.parent.name.startswith(PREFIX) and path.parent.stat().st_mode & 0o777 == 0o700 for path in sockets} == {True}


def test_running_id_is_refused(runner: asyncio.Runner, engine: InProcessVllm) -> None:
    async def main() -> None:
        chunks = engine.generate(make_request(max_tokens=400, id="twin"))
        await anext(chunks)
        with pytest.raises(RequestRejected, match="twin"):
            await collect(engine, make_request(id="twin"))
        await chunks.aclose()

    runner.run(main())


@pytest.mark.parametrize("way", STOP_METHODS)
def test_worker_is_idle_after_a_request_is_stopped(
    runner: asyncio.Runner, engine: InProcessVllm, running: Running, way: str
) -> None:
    runner.run(asyncio.wait_for(STOP_METHODS[way](engine, running), 30))
    assert running() == 0, "at once"
    # The worker polls for work for a second and must then be idle; 500 tokens would keep it busy for longer. With few CPUs the core is
    # the worker.
    worker = processes().get("VLLM::Worker") or processes()["VLLM::EngineCore"]
    cpu_seconds_within(worker, 1.2)
    assert cpu_seconds_within(worker, 0.5) < 0.1


def test_environment_of_other_children_is_unchanged(engine: InProcessVllm) -> None:
    assert "omp" not in os.environ.get("LD_PRELOAD", "")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("max_model_lem=5", "max_model_lem.*allowed.*max_model_len"),
        ("max_model_len=few", "max-model-len.*few"),
        ("enforce_eager=perhaps", "either 1 or 0"),
        ("model=other", "unknown option 'model'"),
    ],
)
def test_unknown_vllm_options_are_named(
    runner: asyncio.Runner, engine: InProcessVllm, tiny: Path, query: str, words: str
) -> None:
    with pytest.raises(InvalidEngineOption, match=words):
        runner.run(open_engine(f"vllm://{tiny}?{query}").start())


def test_unloadable_model_raises(runner: asyncio.Runner, engine: InProcessVllm, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "unheard_of"}')
    with pytest.raises(EngineUnavailable, match="does not start"):
        runner.run(open_engine(f"vllm://{tmp_path}").start())


def test_invalid_image_is_refused(runner: asyncio.Runner, engine: InProcessVllm) -> None:
    with pytest.raises(RequestRejected, match="image 1 cannot be decoded"):
        runner.run(collect(engine, make_request(images=[cases.PIXEL, b"junk"])))


def test_cancelled_simultaneous_starts_leave_no_process(runner: asyncio.Runner, engine: InProcessVllm, tiny: Path) -> None:
    others = [open_engine(f"vllm://{tiny}") for _ in range(2)]
    ours = set(orphan_guard.survivors(os.getpid()))

    def started() -> set[int]:
        return set(orphan_guard.survivors(os.getpid())) - ours

    async def main() -> None:
        before = set(multiprocessing.active_children())
        starting = [asyncio.create_task(other.start()) for other in others]

        def both_have_cores() -> bool:
            assert not any(task.done() for task in starting), "one came up before the other one's core was there"
            return len(set(multiprocessing.active_children()) - before) >= 2

        await eventually(both_have_cores, limit_s=START_LIMIT_S, poll_s=0.1)
        for task in starting:
            task.cancel()
        await asyncio.wait(starting)
        assert all(task.cancelled() for task in starting)
        began = time.monotonic()
        await asyncio.gather(*(other.close() for other in others))
        assert time.monotonic() - began < 30
        assert set(multiprocessing.active_children()) == before

    runner.run(main())
    assert left({process_identity(pid) for pid in started()}) == []
    assert runner.run(engine.is_healthy())


@pytest.fixture
def prompt_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a core that hangs noticed at once."""
    monkeypatch.setattr(core_watch, "PING_EVERY_S", 0.5)
    monkeypatch.setattr(core_watch, "AWAY_S", 1.0)


@pytest.mark.usefixtures("prompt_watch")
def test_hung_core_is_reported_and_its_requests_go_on_with_it(
    runner: asyncio.Runner, engine: InProcessVllm, tmp_path: Path
) -> None:
    async def main() -> tuple[list[Chunk], list[Chunk]]:
        host, client = EngineHost(engine), SocketEngine(str(tmp_path / "engine.sock"), watch_s=0.1)
        await host.start(unix_socket.listen(tmp_path / "engine.sock"))
        await client.start()
        long = asyncio.create_task(collect(client, make_request(max_tokens=300, sampling={"ignore_eos": True})))
        await eventually(engine.running)
        core = processes()["VLLM::EngineCore"]
        os.kill(core, signal.SIGSTOP)
        try:
            await eventually(lambda: is_unhealthy(client))
            assert not await engine.is_healthy()
            late = asyncio.create_task(collect(client, make_request(max_tokens=2, sampling={"ignore_eos": True})))
        finally:
            os.kill(core, signal.SIGCONT)
        await eventually(client.is_healthy)
        assert processes()["VLLM::EngineCore"] == core
        answers = await long, await late
        await client.close()
        await host.close()
        return answers

    assert [len(tokens(chunks)) for chunks in runner.run(main())] == [300, 2]


@pytest.mark.usefixtures("prompt_watch")
def test_health_of_vllms_server_is_that_of_the_core(
    runner: asyncio.Runner, engine: InProcessVllm, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.entrypoints.serve.exception_handling import register
    from vllm.entrypoints.serve.instrumentator import health
    from vllm.v1.engine.async_llm import AsyncLLM

    # Restores the method after the test.
    monkeypatch.setattr(AsyncLLM, "check_health", AsyncLLM.check_health)
    server.watch_core()
    app = register.FastAPI()
    app.include_router(health.router)
    register.init_exception_handler(app)
    app.state.engine_client = engine._llm

    async def main() -> None:
        async def answers(status: int) -> bool:
            return (await client.get("/health")).status_code == status

        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://core") as client:
            assert await answers(200)
            core = processes()["VLLM::EngineCore"]
            os.kill(core, signal.SIGSTOP)
            try:
                await eventually(lambda: answers(server.STATUS_CORE_AWAY), poll_s=0.1)
            finally:
                os.kill(core, signal.SIGCONT)
            await eventually(lambda: answers(200), poll_s=0.1)

    runner.run(main())


async def is_unhealthy(engine: Engine) -> bool:
    return not await engine.is_healthy()


@pytest.mark.usefixtures("prompt_watch")
def test_core_that_hangs_for_long_is_restarted(
    runner: asyncio.Runner, engine: InProcessVllm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_watch, "KILL_S", 2.0)

    async def main() -> list[Chunk]:
        core = processes()["VLLM::EngineCore"]
        os.kill(core, signal.SIGSTOP)
        with pytest.raises(EngineUnavailable):
            await collect(engine, make_request())
        await eventually(engine.is_healthy, limit_s=START_LIMIT_S, poll_s=0.2)
        assert processes()["VLLM::EngineCore"] != core
        return await collect(engine, make_request(max_tokens=2, sampling={"ignore_eos": True}))

    assert len(tokens(runner.run(main()))) == 2


def test_dead_core_is_reported_and_restarted(
    runner: asyncio.Runner, engine: InProcessVllm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also after an unexpected error of the first attempt to remove the old core."""
    unload, failures = engine._unload, [RuntimeError("no")]

    async def fail_once() -> None:
        if failures:
            raise failures.pop()
        await unload()

    monkeypatch.setattr(engine, "_unload", fail_once)

    async def main() -> list[Chunk]:
        chunks = engine.generate(make_request(max_tokens=500, sampling={"ignore_eos": True}))
        await anext(chunks)
        os.kill(processes()["VLLM::EngineCore"], 9)
        with pytest.raises(EngineUnavailable):
            async for _ in chunks:
                pass
        assert not await engine.is_healthy()
        with pytest.raises(EngineUnavailable):
            await collect(engine, make_request())
        await eventually(engine.is_healthy, limit_s=START_LIMIT_S, poll_s=0.2)
        return await collect(engine, make_request(max_tokens=2, sampling={"ignore_eos": True}))

    assert len(tokens(runner.run(main()))) == 2
    assert "the check of the vLLM core has failed" in caplog.text


def test_close_ends_all_processes_and_requests(runner: asyncio.Runner, engine: InProcessVllm) -> None:
    """Must be the last test of the module: the close of the fixture then has no effect."""

    async def main() -> Chunk:
        task = asyncio.create_task(collect(engine, make_request(max_tokens=500, sampling={"ignore_eos": True})))
        await eventually(engine.running)
        began = time.monotonic()
        await engine.close()
        assert time.monotonic() - began < 30
        return (await task)[-1]

    assert "VLLM::EngineCore" in processes()
    assert runner.run(main()).finish == "abort"
    # A worker ends by itself once its core is gone.
    wait_until(lambda: not processes())
    assert not runner.run(engine.is_healthy())
