"""Schemas that the compiler refuses: only what a request promises is an error."""

from __future__ import annotations

import json
from typing import Any

from responses_app.engine_interface import Constraint, RequestRejected
from responses_app.engines.replay.engine import ReplayEngine
from tests.support.api.case import HELLO, TOOL, ApiCase, record_text

PARAMETERS = {
    "type": "object",
    "properties": {"id": {"type": "string", "format": "uuid"}},
    "required": ["id"],
    "additionalProperties": False,
}
LOOSE = {**TOOL, "parameters": PARAMETERS, "strict": False}
STRICT = {**LOOSE, "name": "get_strictly", "strict": True}


class NoFormats(ReplayEngine):
    """Engine whose compiler takes no `format`."""

    def check_constraint(self, constraint: Constraint) -> None:
        if '"format": "uuid"' in json.dumps(constraint.value).replace("\\", ""):
            raise RequestRejected("compiling it takes more than 12 s of CPU time")


class RefusedSchemaTest(ApiCase):
    """With an engine whose compiler refuses a keyword."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = NoFormats()

    async def test_arguments_without_strict_are_any_object(self) -> None:
        for more in ({}, {"tool_choice": "required"}, {"tool_choice": {"type": "function", "name": TOOL["name"]}}):
            with self.subTest(more=more):
                async with self.serving(record_text(HELLO)) as client:
                    response = await self.post(client, tools=[LOOSE], **more)
                    self.assertEqual(response.status_code, 200, response.content)
                constraint: Any = self.engine.requests[-1].constraint
                self.assertIn(TOOL["name"], json.dumps(constraint.value))
                self.engine = NoFormats()

    async def test_strict_schema_is_refused_by_path(self) -> None:
        async with self.serving() as client:
            response = await self.post(client, tools=[LOOSE, STRICT], tool_choice="required")
            self.refused(response, 400, "invalid_function_parameters", "tools[1].parameters", "12 s of CPU time")
