"""Server tools of a request: the executors of the MCP tools and of the other tools, joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

import orjson
from asgiref.sync import sync_to_async

from responses_app.models import Direction, Item, Response
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.ids import new_id
from responses_app.runs.server_tools import approval_address
from responses_app.runs.server_tools.call_parser import AskingExecutor
from responses_app.store.content import approvals, tool_outputs
from responses_app.tools.base import ToolExecutor
from responses_app.tools.composite import CompositeExecutor
from responses_app.tools.declaration import ServerTool, ToolCallContext
from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp import servers
from responses_app.tools.mcp.executor import BoundApprovals, McpExecutor
from responses_app.tools.mcp.sessions import McpSessions
from responses_app.tools.recorded.calls import CALL_TYPES
from responses_app.tools.recorded.executor import RecordedExecutor, RecordedSessions
from responses_app.tools.registry import SERVER_TOOLS

# An approved call is in a later response of the thread than its request.
MAX_RECORDED_ITEMS: Final = 500
# Returns the tools that the server runs for a request, from the request and the id of the response; None without any.
ToolFactory: TypeAlias = Callable[[CreateRequest, str], ToolExecutor | None]


def server_tools(create_request: CreateRequest, uid: str) -> ToolExecutor | None:
    """Return the server tools of the response `uid`; None without such tools in the request."""
    made = [_mcp(create_request, uid), *(_open(tool, create_request, uid) for tool in SERVER_TOOLS)]
    executors = [executor for executor in made if executor is not None]
    if not executors:
        return None
    executor = CompositeExecutor(executors) if len(executors) > 1 else executors[0]
    if create_request.uses_recorded_results and create_request.rerun_of is not None:
        return RecordedExecutor(executor, partial(load_recorded_items, create_request.project, create_request.rerun_of))
    return executor


async def load_recorded_items(project: str, uid: str) -> Sequence[Mapping[str, Any]]:
    """Load the calls of server tools of a response, and of later responses of the thread that are no reruns, with the results."""
    original = await Response.objects.filter(project=project, uid=uid).only("pk", "thread").afirst()
    if original is None:
        return []
    items = Item.objects.filter(response_id=original.pk) | Item.objects.filter(
        response__thread=original.thread, response__project=project, response__rerun_of="", response_id__gt=original.pk
    )
    calls = items.filter(direction=Direction.OUTPUT, type__in=CALL_TYPES).order_by("response_id", "pk")
    bodies = [body async for body in calls.values_list("body", flat=True)[:MAX_RECORDED_ITEMS]]
    return await tool_outputs.with_outputs(project, [orjson.loads(body) for body in bodies])


def _mcp(create_request: CreateRequest, uid: str) -> ToolExecutor | None:
    tools = create_request.mcp_tools
    if not tools:
        return None

    async def claim(request_id: str) -> bool:
        return request_id in await sync_to_async(approvals.claim)(create_request.project, [request_id], uid)

    known = {
        label: replace(servers.server_of(tool, create_request.secrets.get(label, {})), traceparent=create_request.traceparent)
        for label, tool in tools.items()
    }
    sessions = (RecordedSessions if create_request.uses_recorded_results else McpSessions)(
        known, ToolLimits.from_settings(), create_request.project
    )
    project = create_request.project
    bound = BoundApprovals(
        {label: approval_address.id_ending(project, tool) for label, tool in tools.items()},
        lambda request_id, tool: approval_address.is_for_server(request_id, project, tool),
    )
    return McpExecutor(tools, sessions, claim, bound)


def _open(tool: ServerTool, create_request: CreateRequest, uid: str) -> ToolExecutor | None:
    declared = tool.find(create_request.tools)
    if declared is None:
        return None
    path = f"tools[{list(create_request.tools).index(declared)}]"
    executor = tool.open(ToolCallContext(declared, path, create_request.project, uid, new_id))
    return AskingExecutor(tool, executor) if executor is not None and create_request.asks_before_calls else executor
