"""Tools whose calls may wait for their answer: the conversation goes on without it."""

from __future__ import annotations

import orjson
from openai.types.responses import Response as WireResponse

from tests.support.api.case import ENCODING, HELLO, TOOL, WEATHER, ApiCase, record_text

LATER = {**TOOL, "async": True}


class AsyncToolsTest(ApiCase):
    """With a scripted engine."""

    async def test_a_call_may_be_answered_turns_later_and_the_latest_answer_counts(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(HELLO), record_text(HELLO)) as client:
            made = await self.made(client, tools=[LATER])
            self.assertIs(made["tools"][0]["async"], True)
            call = made["output"][-1]
            self.assertIs(call["async"], True)
            WireResponse.model_validate(made, strict=True)
            # Without `async` in this turn: the call keeps what it was.
            after = await self.made(client, input="Meanwhile?", previous_response_id=made["id"], tools=[TOOL])
            outputs = [
                {"type": "function_call_output", "call_id": call["call_id"], "output": word} for word in ("foggy", "sunny")
            ]
            await self.made(client, input=outputs, previous_response_id=after["id"])
            prompt = ENCODING.decode(list(self.engine.requests[-1].prompt))
            self.assertIn("sunny", prompt)
            self.assertNotIn("foggy", prompt)

    async def test_a_call_of_any_other_tool_may_not(self) -> None:
        async with self.serving(record_text(WEATHER)) as client:
            made = await self.made(client, tools=[TOOL])
            self.assertNotIn("async", made["output"][-1])
            refused = await self.post(client, input="Meanwhile?", previous_response_id=made["id"])
            self.assertIn("No tool output found", orjson.loads(refused.content)["error"]["message"])
