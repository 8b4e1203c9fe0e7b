"""Images in demo-chat with vLLM: it describes unseen drawings."""

from __future__ import annotations

import gc
import json
import tempfile
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest

from demo_training.vision.drawing import any_drawing, draw
from responses_app.demo.build import build
from responses_app.engines import orphan_guard
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import parse_models
from tests.support.api.case import ApiCase, KeyedClient
from tests.support.api.image_case import data_url, part, user
from tests.support.engines.requirements import START_LIMIT_S
from tests.support.request_bodies import STRING, function

# Ignore warnings from vLLM and torch.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(START_LIMIT_S)]

PICTURES, RIGHT = 24, 20
WEATHER = function("get_weather", "Get the current weather for a location.", location=STRING)


def drawn(r: Random, colour: str, shape: str) -> str:
    """Return a drawing as a data URL."""
    out = BytesIO()
    draw(r, colour, shape).save(out, "PNG")
    return data_url(out.getvalue())


class ImagesTest(ApiCase):
    """A single test method, because an engine lives in a single event loop."""

    async def asked(self, *parts: Any, **body: Any) -> dict[str, Any]:
        """Return the response to a message."""
        return await self.made(self.client_of_m, input=[user(*parts)], temperature=0, **body)

    async def text(self, *parts: Any, **body: Any) -> str:
        """Return the text of the response."""
        made = await self.asked(*parts, **body)
        return "".join(one["text"] for item in made["output"] if item["type"] == "message" for one in item["content"])

    async def test_it_sees(self) -> None:
        orphan_guard.guard_children()
        with tempfile.TemporaryDirectory() as folder:
            self.hub = RunManager(parse_models(f"m=vllm://{build('demo-chat', Path(folder))}"))
            manager.set_current(self.hub)
            self.client_of_m = KeyedClient(self.secret)
            try:
                await self.named()
                await self.talked()
            finally:
                manager.set_current(None)
                await self.hub.close()
                # Collect now, so that warnings about resources left open appear in this test.
                del self.hub
                gc.collect()

    async def named(self) -> None:
        """Check colour and shape of most drawings, asked for in one message, or in the next turn."""
        r, right = Random(4711), 0
        for _ in range(PICTURES):
            colour, shape = any_drawing(r)
            answer = await self.text("What do you see?", part(drawn(r, colour, shape)))
            right += colour in answer and shape in answer
        assert right >= RIGHT
        first = await self.asked(part(drawn(r, "blue", "circle")), "What is this?")
        assert "blue" in await self.text("What colour is it?", previous_response_id=first["id"])

    async def talked(self) -> None:
        """Check conversations without images, tools included."""
        assert "hello" in (await self.text("Hello!")).lower()
        made = await self.asked("What is the weather in Paris?", tools=[WEATHER])
        calls = [item for item in made["output"] if item["type"] == "function_call"]
        assert [json.loads(call["arguments"]) for call in calls] == [{"location": "Paris"}]
