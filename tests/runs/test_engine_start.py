"""Run manager: starts its engines side by side, all of them or none."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from pathlib import Path

import pytest

from responses_app.dialects.harmony.dialect import HarmonyDialect
from responses_app.engine_interface import EngineUnavailable
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel, start_all
from tests.support.waiting import LIMIT_S, run_ready_tasks


class GatedStartEngine(ReplayEngine):
    """Engine whose start sets `entered`, waits for `go`, and then fails with `error`, if given."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error
        self.entered, self.go = asyncio.Event(), asyncio.Event()

    async def start(self) -> None:
        self.entered.set()
        await self.go.wait()
        if self.error:
            raise self.error
        await super().start()


HARMONY = functools.cache(HarmonyDialect)


def hub_of(**engines: ReplayEngine) -> RunManager:
    return RunManager({name: ServedModel(name, engine, "", {}, dialect=HARMONY()) for name, engine in engines.items()})


def test_engines_start_side_by_side() -> None:
    async def main() -> None:
        a, b = GatedStartEngine(), GatedStartEngine()
        hub = hub_of(a=a, b=b)
        starting = asyncio.create_task(hub.start())
        await asyncio.wait_for(asyncio.gather(a.entered.wait(), b.entered.wait()), LIMIT_S)
        a.go.set()
        b.go.set()
        await starting
        assert await a.is_healthy()
        assert await b.is_healthy()
        await hub.start()
        await hub.close()
        assert not await a.is_healthy()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("setting", "family", "warned"),
    [({}, "gpt-oss", False), ({"model_type": "other"}, "unknown", True)],
    ids=["known", "unknown"],
)
@pytest.mark.slow
def test_opening_a_model_logs_its_family(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, setting: dict[str, str], family: str, warned: bool
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt_oss", **setting}))
    (tmp_path / "generation_config.json").write_text('{"top_k": 20, "num_beams": 4}')
    model = ServedModel("m", ReplayEngine(), str(tmp_path), {})
    with caplog.at_level("INFO", "responses.models"), contextlib.suppress(ValueError, OSError):
        asyncio.run(model.open())
    assert model.family is not None
    assert model.family.family == family
    assert f"m: {family} (" in caplog.text
    # Also the files of a hub name, which has no folder, are read by now.
    assert model.defaults.top_k == 20
    assert "m: generation_config.json has num_beams, which this server does not apply" in caplog.text
    assert ("not recognised" in caplog.text) is warned


@pytest.mark.parametrize("error", [EngineUnavailable("no memory"), ValueError("no memory"), OSError("no memory")])
def test_a_failure_names_the_model_and_closes_the_others(error: Exception) -> None:
    async def main() -> None:
        up, down, late = ReplayEngine(), GatedStartEngine(error), GatedStartEngine()
        hub = hub_of(up=up, down=down, late=late)
        starting = asyncio.create_task(hub.start())
        await asyncio.wait_for(asyncio.gather(down.entered.wait(), late.entered.wait()), LIMIT_S)
        assert await up.is_healthy()
        down.go.set()
        with pytest.raises(EngineUnavailable, match="down: no memory"):
            await starting
        assert not await up.is_healthy()
        late.go.set()
        await run_ready_tasks(10)
        assert not await late.is_healthy(), "its start was given up"

    asyncio.run(main())


class LoadedModel(ServedModel):
    """Model whose dialect is loaded at once, without a thread."""

    async def open(self) -> None:
        pass


@pytest.mark.parametrize("turns", range(4))
def test_cancelled_start_leaves_no_unawaited_coroutine(turns: int) -> None:
    async def main() -> None:
        served = {name: LoadedModel(name, GatedStartEngine(), "", {}, dialect=HARMONY()) for name in "ab"}
        starting = asyncio.create_task(start_all(served))
        await run_ready_tasks(turns)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    # Python warns of a coroutine that was never awaited, and pytest makes the warning an error.
    asyncio.run(main())


def test_manager_starts_again_after_a_failure() -> None:
    async def main() -> None:
        down = GatedStartEngine(EngineUnavailable("away"))
        down.go.set()
        hub = hub_of(up=ReplayEngine(), down=down)
        with pytest.raises(EngineUnavailable):
            await hub.start()
        down.error = None
        await hub.start()
        assert await hub.model("up").engine.is_healthy()
        assert await hub.model("down").engine.is_healthy()
        await hub.close()

    asyncio.run(main())


def test_a_cancelled_start_closes_what_came_up() -> None:
    async def main() -> None:
        up, late = ReplayEngine(), GatedStartEngine()
        starting = asyncio.create_task(hub_of(up=up, late=late).start())
        await asyncio.wait_for(late.entered.wait(), LIMIT_S)
        assert await up.is_healthy()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not await up.is_healthy()
        late.go.set()
        await run_ready_tasks(10)
        assert not await late.is_healthy()

    asyncio.run(main())
