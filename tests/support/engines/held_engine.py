"""Replay engine whose generations pause until a test lets them continue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from responses_app.engine_interface import Chunk, GenerateRequest
from responses_app.engines.replay.engine import ReplayEngine


class HeldEngine(ReplayEngine):
    """Replay engine that pauses behind each chunk while `gate` is not set."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        async with aclosing(super().generate(request)) as chunks:
            async for chunk in chunks:
                yield chunk
                await self.gate.wait()
