"""Names of the client's tools that are names of tools of the server."""

from __future__ import annotations

from typing import Any

from tests.support.runs.server_tools import RoundsCase

SAME = {"type": "function", "name": "demo__look", "parameters": {"type": "object", "properties": {}}, "strict": False}
ADDED = {"type": "additional_tools", "role": "developer", "tools": [SAME]}


class ToolNameTest(RoundsCase):
    async def test_name_that_is_used_twice_is_refused(self) -> None:
        cases: dict[str, dict[str, Any]] = {
            "in the request": {"tools": [SAME]},
            "in an item": {"input": [ADDED, {"role": "user", "content": "Hi"}]},
        }
        async with self.serving() as client:
            for place, fields in cases.items():
                with self.subTest(place):
                    self.refused(
                        await self.post(client, **fields), 400, "invalid_value", "tools", "'demo__look' belongs to a tool"
                    )
