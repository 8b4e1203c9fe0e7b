"""Images through the API into vLLM: the output depends on the image, and usage counts the image tokens."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest

from responses_app.engines.http.client import HttpVllm
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import parse_models
from tests.support.api.case import ApiCase, KeyedClient
from tests.support.api.image_case import data_url, part, user
from tests.support.engines import image_checkpoint, image_requirements

pytestmark = pytest.mark.engine

RED, BLUE, WHITE = (
    data_url(picture) for picture in (image_requirements.RED, image_requirements.BLUE, image_requirements.WHITE)
)
GREEDY = {"temperature": 0, "max_output_tokens": 16, "top_logprobs": 2, "ignore_eos": True}


class VisionTest(ApiCase):
    """Random model, whose output differs for different images."""

    @pytest.fixture(autouse=True)
    def name_the_model(self, server: tuple[subprocess.Popen[bytes], str], engine: HttpVllm, seeing: Path) -> None:
        """Wait for the server, which is ready when `engine` is."""
        del engine
        self.models = f"m={server[1]}&tokenizer={seeing}"

    async def generate(self, *parts: Any, **body: Any) -> tuple[Any, dict[str, Any]]:
        """Return the output for a message, with log-probabilities, and the response."""
        made = await self.made(self.client_of_m, input=[user(*parts)], **GREEDY, **body)
        return [{**item, "id": None} for item in made["output"]], made

    async def counted(self, *parts: Any, **body: Any) -> int:
        """Return the result of input_tokens."""
        whole = orjson.dumps({"model": "m", "input": [user(*parts)], **body})
        response = await self.client_of_m.post("/v1/responses/input_tokens", whole, content_type="application/json")
        self.assertEqual(response.status_code, 200, response.content)
        return int(orjson.loads(response.content)["input_tokens"])

    async def test_image_reaches_the_model(self) -> None:
        self.hub = RunManager(parse_models(self.models))
        manager.set_current(self.hub)
        self.client_of_m = KeyedClient(self.secret)
        try:
            await self.looked()
            await self.remembered()
            await self.refusals()
        finally:
            manager.set_current(None)
            await self.hub.close()

    async def looked(self) -> None:
        """Check that the output depends only on the image, and the token count equals vLLM's."""
        red, response = await self.generate("Look:", part(RED))
        self.assertEqual(red, (await self.generate("Look:", part(RED)))[0])
        blue, _ = await self.generate("Look:", part(BLUE))
        self.assertNotEqual(red, blue)
        blank, bare = await self.generate("Look:")
        self.assertNotIn(blank, (red, blue))
        self.assertEqual(response["usage"]["input_tokens"], bare["usage"]["input_tokens"] + image_checkpoint.IMAGE_TOKENS)
        self.assertEqual(await self.counted("Look:", part(BLUE)), response["usage"]["input_tokens"])
        both, two = await self.generate(part(RED), "or", part(BLUE))
        self.assertNotEqual(both, (await self.generate(part(BLUE), "or", part(RED)))[0])
        self.assertEqual(await self.counted(part(BLUE), "or", part(RED)), two["usage"]["input_tokens"])
        clear, _ = await self.generate("Look:", part(data_url(image_requirements.transparent())))
        self.assertEqual(clear, (await self.generate("Look:", part(WHITE)))[0])
        # A placeholder typed by the user must not count as a placeholder.
        _, written = await self.generate("<image>", part(RED))
        self.assertEqual(written["status"], "completed" if written["incomplete_details"] is None else "incomplete")

    async def remembered(self) -> None:
        """Check that a continued turn includes the earlier image, and truncation drops the oldest turn with its image."""
        answers = []
        for url in (RED, BLUE, RED):
            _, first = await self.generate("Look:", part(url))
            answers.append((await self.generate("And?", previous_response_id=first["id"]))[0])
        self.assertEqual(answers[0], answers[2])
        self.assertNotEqual(answers[0], answers[1])
        _, first = await self.generate("Look:" * 40, part(RED))
        _, second = await self.generate("Long. " * 60, previous_response_id=first["id"], truncation="auto")
        self.assertLess(second["usage"]["input_tokens"], 60 * 6 + 60)

    async def refusals(self) -> None:
        """Check that an input too long because of its images is rejected before the run starts, by the server that counts the tokens."""
        response = await self.post(self.client_of_m, input=[user("x" * 420, *[part(RED)] * 20)])
        self.refused(response, 400, "invalid_prompt", None, "longer than the maximum model length of 512")
