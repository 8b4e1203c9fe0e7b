"""The switches that bring back what OpenAI's own API does."""

from __future__ import annotations

import orjson
from django.test import override_settings

from tests.support.api.case import HELLO, ApiCase, first_event, record_text
from tests.support.engines.held_engine import HeldEngine


class CompatTest(ApiCase):
    """With a scripted engine."""

    @override_settings(RESPONSES_STRICT_COMPAT=True)
    async def test_only_streams_of_the_background_are_read_again(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(HELLO)) as client:
            plain = orjson.loads((await self.post(client)).content)["id"]
            why = "This response cannot be streamed because it was not created with {}=true."
            for query in ("?stream=true", "?stream=true&starting_after=1"):
                refused = await client.get(f"/v1/responses/{plain}{query}")
                self.refused(refused, 400, None, None, why.format("background"))
            self.assertEqual((await client.get(f"/v1/responses/{plain}")).status_code, 200)
            unheard = orjson.loads((await self.post(client, background=True)).content)["id"]
            self.refused(await client.get(f"/v1/responses/{unheard}?stream=true"), 400, None, None, why.format("stream"))
            events = await self.stream(client, background=True)
            uid = events[0]["response"]["id"]
            self.assertEqual(await self.read(await client.get(f"/v1/responses/{uid}?stream=true")), events)

    async def test_a_response_of_the_foreground_is_not_found_while_it_runs(self) -> None:
        for strict, status in ((True, 404), (False, 200)):
            self.engine = engine = HeldEngine()
            async with self.serving(record_text(HELLO)) as client:
                with self.subTest(strict=strict, status=status):
                    response = await self.post(client, stream=True)
                    parts = aiter(response.streaming_content)
                    uid = first_event(await anext(parts))["response"]["id"]
                    with override_settings(RESPONSES_STRICT_COMPAT=strict):
                        self.assertEqual((await client.get(f"/v1/responses/{uid}")).status_code, status)
                        engine.gate.set()
                        async for _ in parts:
                            pass
                        self.assertEqual((await client.get(f"/v1/responses/{uid}")).status_code, 200)

    @override_settings(RESPONSES_SSE_DONE=False)
    async def test_the_end_mark_can_be_switched_off(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            response = await self.post(client, stream=True)
            *_, last, end = b"".join([part async for part in response.streaming_content]).split(b"\n\n")
            self.assertEqual((last.split(b"\n")[0], end), (b"event: response.completed", b""))
