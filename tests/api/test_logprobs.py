"""Log-probabilities: asked of the engine, the same in deltas, done and item, and empty lists unless asked for."""

from __future__ import annotations

from typing import Any

import orjson

from tests.support.api.case import HELLO, ApiCase, record_logprobs, record_text

INCLUDE = "message.output_text.logprobs"


class LogprobsTest(ApiCase):
    """With a scripted engine."""

    async def test_logprobs_are_in_deltas_done_event_and_item(self) -> None:
        async with self.serving(record_logprobs()) as client:
            events = await self.stream(client, include=[INCLUDE], top_logprobs=2)
            self.assertEqual(self.engine.requests[-1].sampling.logprobs, 2)
            deltas = [e for e in events if e["type"] == "response.output_text.delta"]
            entries = [entry for e in deltas for entry in e["logprobs"]]
            self.assertEqual("".join(entry["token"] for entry in entries), "Hello there!")
            self.assertEqual({len(entry["top_logprobs"]) for entry in entries}, {2})
            self.assertEqual(
                entries[0],
                {"token": "Hello", "logprob": -0.5, "bytes": list(b"Hello"), "top_logprobs": entries[0]["top_logprobs"]},
            )
            done = next(e for e in events if e["type"] == "response.output_text.done")
            end = events[-1]["response"]
            self.assertEqual(end["output"][0]["content"][0]["logprobs"], entries)
            self.assertEqual(done["logprobs"], entries)
            self.assertEqual(end["top_logprobs"], 2)
            self.assertEqual(orjson.loads((await client.get(f"/v1/responses/{end['id']}")).content), end)

    async def test_requested_number_reaches_the_engine(self) -> None:
        bodies: list[tuple[dict[str, Any], int | None]] = [
            ({}, None),
            ({"top_logprobs": 0}, None),
            ({"include": [INCLUDE]}, 0),
            ({"top_logprobs": 20}, 20),
        ]
        async with self.serving(*[record_text(HELLO)] * len(bodies)) as client:
            for body, requested in bodies:
                with self.subTest(body=body, requested=requested):
                    made = orjson.loads((await self.post(client, **body)).content)
                    self.assertEqual(self.engine.requests[-1].sampling.logprobs, requested)
                    self.assertEqual(made["output"][0]["content"][0]["logprobs"], [])

    async def test_more_than_twenty_are_refused(self) -> None:
        async with self.serving() as client:
            self.refused(await self.post(client, top_logprobs=21), 400, "integer_above_max_value", "top_logprobs")
            self.refused(await self.post(client, top_logprobs=-1), 400, "integer_below_min_value", "top_logprobs")
