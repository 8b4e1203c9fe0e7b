"""`configuration_update`: items that change the effort and the format from there on, whatever the requests say."""

from __future__ import annotations

from typing import Any

import orjson

from tests.support.api.case import ENCODING, HELLO, ApiCase, record_text

SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x", None]}}, "required": ["a"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "name": "thing", "schema": SCHEMA, "strict": True}
HI = {"role": "user", "content": "Hi"}


def update(**more: Any) -> dict[str, Any]:
    """An item that changes this."""
    return {"type": "configuration_update", **more}


class ConfigurationTest(ApiCase):
    """With a scripted engine."""

    @property
    def prompt(self) -> str:
        """Return the last prompt of the model."""
        text: str = ENCODING.decode(list(self.engine.requests[-1].prompt))
        return text

    async def test_an_effort_holds_until_the_next_one_and_the_request_is_repeated_as_it_was(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(HELLO)) as client:
            low = {"effort": "low"}
            first = await self.made(client, input=[HI, update(reasoning={"effort": "high"}), HI], reasoning=low)
            self.assertIn("Reasoning: high", self.prompt)
            self.assertEqual(first["reasoning"]["effort"], "low")
            second = await self.made(client, previous_response_id=first["id"], reasoning=low)
            self.assertIn("Reasoning: high", self.prompt)
            third = {"input": [update(reasoning={"effort": "medium"}), HI], "previous_response_id": second["id"]}
            await self.made(client, **third, reasoning=low)
            self.assertIn("Reasoning: medium", self.prompt)
            listed = orjson.loads((await client.get(f"/v1/responses/{first['id']}/input_items?order=asc")).content)["data"]
            self.assertEqual([item["type"] for item in listed], ["message", "configuration_update", "message"])

    async def test_a_format_binds_the_answer_until_text_is_asked_for_again(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            first = await self.made(client, input=[update(text={"format": FORMAT}), HI])
            bound: Any = self.engine.requests[-1].constraint
            self.assertIn(str(SCHEMA), str(bound.value))
            self.assertEqual(first["text"]["format"], {"type": "text"})
            again = [update(text={"format": {"type": "text"}}), HI]
            await self.made(client, input=again, previous_response_id=first["id"])
            self.assertIsNone(self.engine.requests[-1].constraint)

    async def test_a_conversation_keeps_it(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            body = orjson.dumps({"items": [update(reasoning={"effort": "high"})]})
            response = await client.post("/v1/conversations", body, content_type="application/json")
            await self.made(client, conversation=orjson.loads(response.content)["id"])
            self.assertIn("Reasoning: high", self.prompt)

    async def test_invalid_configuration_is_refused_by_path(self) -> None:
        async with self.serving() as client:
            for more, code, param in (
                ({"reasoning": {"effort": "huge"}}, "invalid_value", "input[0].reasoning.effort"),
                ({"reasoning": {"summary": "auto"}}, "unknown_parameter", "input[0].reasoning.summary"),
                ({"text": {}}, "missing_required_parameter", "input[0].text.format"),
                ({"text": {"format": {**FORMAT, "schema": None}}}, "missing_required_parameter", "input[0].text.format.schema"),
                ({"text": {"format": {**FORMAT, "schema": {}}}}, "invalid_json_schema", "input[0].text.format.schema"),
                ({"model": "m"}, "unknown_parameter", "input[0].model"),
            ):
                with self.subTest(more=more):
                    self.refused(await self.post(client, input=[update(**more), HI]), 400, code, param)
