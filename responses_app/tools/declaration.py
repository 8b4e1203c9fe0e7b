"""Declaration of a server tool: all that other packages need to know about the tool. `registry` lists the declarations."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from django.conf import settings

from responses_app.dialects.toolset import RECIPIENT
from responses_app.protocol.items.server_tools.tool_result import ToolResult
from responses_app.tools.base import Json, ToolExecutor
from responses_app.validation.base import StrictModel
from responses_app.validation.errors import Loc

STRING: Final = {"type": "string"}
INTEGER: Final = {"type": "integer"}
ItemText: TypeAlias = Callable[[Json], str]


@dataclass(frozen=True, slots=True)
class PastCall:
    """Conversion of the item of an earlier call: to the name of the function, the arguments, and the output of the call.

    The output is for items whose tool gave the model no output of its own.
    """

    function: ItemText
    arguments: ItemText
    output: ItemText


@dataclass(frozen=True, slots=True)
class OptionalParts:
    """Parts of a result that the item shows only if the request names them in `include`.

    `parts_of` returns all of them by name, and `drop` returns a result without the parts that `include` does not name.
    """

    parts_of: Callable[[Any], Json]
    drop: Callable[[Any, Collection[str]], ToolResult]


@dataclass(frozen=True, slots=True)
class ToolCallContext:
    """Request for which a tool is opened: the tool as declared, the JSON path, the project, and the id of the response."""

    declared: Json
    path: str
    project: str
    response_uid: str
    new_id: Callable[[str], str]


async def _nothing_to_check(_project: str, _declared: Json, _path: str) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTool:
    """Declaration of a server tool."""

    # Name in the lists of tools that an API key may use.
    name: str
    # Types of the tool in `tools` of a request: names of one tool.
    types: frozenset[str]
    # Functions that the model is offered, by name.
    functions: Mapping[str, Json]
    # Types of the items of calls -> conversion to a function call.
    past_calls: Mapping[str, PastCall]
    # Return the executor for a request; None if the tool cannot run. Modules with Django's models are imported inside.
    open: Callable[[ToolCallContext], ToolExecutor | None]
    # Parse a declared tool to the form that the response repeats: (tool, JSON path). Raises InvalidRequest.
    parse: Callable[[Json, Loc], dict[str, Any]]
    # Types of items of calls -> schemas of the items in the input of a request.
    input_items: Mapping[str, type[StrictModel]]
    # Setting without which the server does not run the tool.
    setting: str = ""
    # Check what a declared tool refers to, before anything runs: (project, tool, JSON path). Raises InvalidRequest, NotFound.
    check: Callable[[str, Json, str], Awaitable[None]] = _nothing_to_check
    # Return whether the model is offered a declared tool.
    is_offered: Callable[[Json], bool] = lambda _tool: True
    # Values of `include` that name parts of results, and these parts.
    includes: tuple[str, ...] = ()
    optional_parts: Mapping[type[ToolResult], OptionalParts] = field(default_factory=dict)

    @property
    def approval_label(self) -> str:
        """Server label of the items that request an approval for a call of the tool."""
        return self.name.replace("_", " ")

    def approved_requests(self, items: Sequence[Json]) -> list[Json]:
        """Return the requests for approval that were approved, without those whose calls `items` have.

        The item of a call names no request: the calls behind the approvals are those of the oldest ones.
        """
        requests: dict[str, Json] = {}
        approved: list[Json] = []
        for item in items:
            kind = item.get("type")
            if kind == "mcp_approval_request" and item["server_label"] == self.approval_label:
                requests[item["id"]] = item
            elif kind == "mcp_approval_response" and item["approve"] and item["approval_request_id"] in requests:
                approved.append(requests[item["approval_request_id"]])
            elif kind in self.past_calls and approved:
                del approved[0]
        return approved

    def find(self, tools: Sequence[Json]) -> Json | None:
        """Return the declared tool among `tools` that the server runs for a request; None without such a tool.

        A tool whose type RESPONSES_INACTIVE_TOOLS names is left out.
        """
        active = self.types - settings.RESPONSES_INACTIVE_TOOLS
        return next((tool for tool in tools if tool["type"] in active and self.is_offered(tool)), None)


def define_function(
    name: str, description: str, properties: Mapping[str, Json], required: Sequence[str] = (), recipient: str | None = None
) -> Json:
    """Define the function `name`. `recipient` is the tool of gpt-oss that takes the place."""
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    recipient_field = {} if recipient is None else {RECIPIENT: recipient}
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
        "strict": False,
        **recipient_field,
    }


def dump(value: object) -> str:
    """Return `value` as JSON."""
    return json.dumps(value, ensure_ascii=False)


def fields_or_status(item: Json, *keys: str) -> str:
    """Return the fields `keys` of the item; if all are empty, the status of the call."""
    fields = {key: item[key] for key in keys if item.get(key)}
    return dump(fields or {"status": item.get("status", "completed")})
