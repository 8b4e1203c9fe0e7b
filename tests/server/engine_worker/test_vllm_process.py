"""Process of a vLLM server, with a host of recordings in the place of the server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from responses_app.engines.replay.engine import ReplayEngine
from responses_app.engines.socket.host import EngineHost
from responses_app.server.engine_worker import vllm_process
from responses_app.server.engine_worker.spec import plan_socket
from responses_app.server.engine_worker.vllm_process import VllmProcess
from responses_app.utils import unix_socket
from tests.support.waiting import eventually


class HangingEngine(ReplayEngine):
    """Engine whose core hangs while `is_hung`."""

    is_hung = False

    async def is_healthy(self) -> bool:
        return not self.is_hung


def test_core_that_hangs_is_logged_and_named_in_the_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(vllm_process, "WATCH", 0.01)
    spec = plan_socket("tiny=vllm:///models/tiny", tmp_path)
    assert spec.socket is not None
    spec.socket.parent.mkdir(parents=True)
    process = VllmProcess(spec, tmp_path)

    async def main(path: Path) -> None:
        engine = HangingEngine([])
        await engine.start()
        host = EngineHost(engine)
        await host.start(unix_socket.listen(path))
        watching = asyncio.create_task(process._while_well())
        assert str(process._failure(1)) == "a process of vLLM's core has died"
        engine.is_hung = True
        await eventually(lambda: "tiny: vLLM's core has not answered for 60 s" in caplog.messages)
        assert str(process._failure(1)) == "vLLM's core hung, and was killed"
        engine.is_hung = False
        await eventually(lambda: "tiny: vLLM's core answers again" in caplog.messages)
        assert not watching.done(), "the server itself ends a core that hangs"
        watching.cancel()
        await asyncio.wait({watching})
        await host.close()

    with caplog.at_level("INFO"):
        asyncio.run(main(spec.socket))
    assert len(caplog.messages) == 2
