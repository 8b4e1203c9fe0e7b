"""Times of a response with tools: the rate of tokens and the time to the first token are those of the model."""

from __future__ import annotations

import pytest

from responses_app.models import Response
from responses_app.web.responses.rows import ResponseStats
from tests.support.api.server_tools_case import CODE_TOOL, HarmonyTexts, ServerToolsCase


class ResponseTimesTest(HarmonyTexts, ServerToolsCase):
    __test__ = True

    @pytest.mark.slow
    async def test_time_of_generation_leaves_out_the_time_of_tools(self) -> None:
        code = "import time\ntime.sleep(0.7)\nprint(6 * 7 * 1000)"
        lines = [self.record(self.call("python", code=code)), self.record(self.answer("Done."), "42000")]
        async with self.serving(*lines) as client:
            made = await self.made(client, tools=[CODE_TOOL])
        row = await Response.objects.aget(uid=made["id"])
        total_s = ResponseStats(row).total_s
        assert row.generation_ms is not None
        assert total_s is not None
        self.assertGreaterEqual(total_s, 0.7)
        self.assertLessEqual(row.generation_ms / 1000, total_s - 0.7)
