"""A prompt that the engine refuses: `invalid_request_error` with the code `invalid_prompt`, whichever way the client learns it."""

from __future__ import annotations

from typing import Any

import orjson

from responses_app.engines.replay.engine import Delay, Fault, Recording, Tokens
from tests.support.api.case import ApiCase, tokens
from tests.support.api.websocket_case import SocketCase

WHY = "The prompt has more images than this model takes."
AT_ONCE = Recording([Fault("bad", WHY)])
LATER = Recording([Tokens(tokens("<|channel|>final<|message|>Half a sen")), Delay(0.01), Fault("bad", WHY)])
KNOWN = {"code": "invalid_prompt", "message": WHY}
TOLD = {"type": "invalid_request_error", "param": None, **KNOWN}


class RefusedPromptsTest(ApiCase):
    """With an engine that refuses, before the first token or behind some."""

    async def check_stored(self, client: Any, uid: str) -> None:
        """GET and a replay say the same as the answer did."""
        got = orjson.loads((await client.get(f"/v1/responses/{uid}")).content)
        self.assertEqual((got["status"], got["error"]), ("failed", KNOWN))
        replayed = await self.read(await client.get(f"/v1/responses/{uid}?stream=true"))
        self.assertEqual((replayed[-2]["error"], replayed[-1]["response"]["error"]), (TOLD, KNOWN))

    async def test_a_stream(self) -> None:
        for line in (AT_ONCE, LATER):
            with self.subTest(at_once=line is AT_ONCE):
                async with self.serving(line) as client:
                    events = await self.stream(client)
                    self.assertEqual([event["type"] for event in events[-2:]], ["error", "response.failed"])
                    self.assertEqual({key: events[-2][key] for key in KNOWN}, KNOWN)
                    self.assertEqual(events[-2]["error"], TOLD)
                    self.assertEqual(events[-1]["response"]["error"], KNOWN)
                    self.assertEqual(
                        [event["response"]["service_tier"] for event in (events[0], events[-1])], ["auto", "default"]
                    )
                    await self.check_stored(client, events[-1]["response"]["id"])

    async def test_a_post_without_a_stream(self) -> None:
        for line in (AT_ONCE, LATER):
            with self.subTest(at_once=line is AT_ONCE):
                async with self.serving(line) as client:
                    answer = await self.post(client)
                    self.refused(answer, 400, "invalid_prompt", None, WHY)
                    self.assertEqual(orjson.loads(answer.content)["error"], TOLD)
                    listed = orjson.loads((await client.get("/v1/responses?limit=1")).content)["data"]
                    await self.check_stored(client, listed[0]["id"])

    async def test_background_response_fails_with_the_code(self) -> None:
        async with self.serving(LATER) as client:
            made = await self.made(client, background=True)
            # The replay ends when the response has ended.
            await self.read(await client.get(f"/v1/responses/{made['id']}?stream=true"))
            await self.check_stored(client, made["id"])

    async def test_a_compaction(self) -> None:
        async with self.serving(AT_ONCE) as client:
            body = orjson.dumps({"model": "m", "input": "Hi"})
            answer = await client.post("/v1/responses/compact", body, content_type="application/json")
            self.refused(answer, 400, "invalid_prompt", None, WHY)

    async def test_a_failure_of_the_engine_stays_one_of_the_server(self) -> None:
        async with self.serving(Recording([Tokens(tokens("<|channel|>final<|message|>Half")), Fault("down")])) as client:
            with self.settings(RESPONSES_ENGINE_WAIT=0):
                self.refused(await self.post(client), 500, "server_error", None)


class RefusedPromptsOnSocketsTest(SocketCase):
    """Refusals on a WebSocket, where only the terminal event tells the error."""

    async def test_the_terminal_event_has_the_code(self) -> None:
        for line in (AT_ONCE, LATER):
            with self.subTest(at_once=line is AT_ONCE):
                async with self.serving(line) as client, self.socket() as socket:
                    response = await socket.create_response()
                    self.assertEqual(response["error"], KNOWN)
                    got = orjson.loads((await client.get(f"/v1/responses/{response['id']}")).content)
                    self.assertEqual(got["error"], KNOWN)
