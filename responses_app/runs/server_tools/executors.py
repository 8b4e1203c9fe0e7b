"""Server tools of a request: the executors of the MCP tools and of the built-in tools, joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from asgiref.sync import sync_to_async
from django.conf import settings

from responses_app.runs.create_request import CreateRequest
from responses_app.runs.ids import new_id
from responses_app.runs.server_tools import approval_address
from responses_app.store.content import approvals
from responses_app.tools import sandbox_access
from responses_app.tools.base import ToolExecutor
from responses_app.tools.code_interpreter.containers import ContainerSession
from responses_app.tools.code_interpreter.executor import CodeInterpreterExecutor
from responses_app.tools.composite import CompositeExecutor
from responses_app.tools.declarations import CODE_INTERPRETER_TYPES, FILE_SEARCH_TYPES, WEB_SEARCH_TYPES, declared_tool
from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp import servers
from responses_app.tools.mcp.executor import BoundApprovals, McpExecutor
from responses_app.tools.mcp.sessions import McpSessions


def server_tools(create_request: CreateRequest, uid: str) -> ToolExecutor | None:
    """Return the tools that the server runs for the response `uid`; None without such tools in the request."""
    executors = [executor for make in EXECUTORS if (executor := make(create_request, uid)) is not None]
    if len(executors) > 1:
        return CompositeExecutor(executors)
    return executors[0] if executors else None


def _mcp(create_request: CreateRequest, uid: str) -> ToolExecutor | None:
    tools = create_request.mcp_tools
    if not tools:
        return None

    async def claim(request_id: str) -> bool:
        return request_id in await sync_to_async(approvals.claim)(create_request.project, [request_id], uid)

    known = {label: servers.server_of(tool, create_request.secrets.get(label, {})) for label, tool in tools.items()}
    sessions = McpSessions(known, ToolLimits.from_settings(), create_request.project)
    project = create_request.project
    bound = BoundApprovals(
        {label: approval_address.id_ending(project, tool) for label, tool in tools.items()},
        lambda request_id, tool: approval_address.is_for_server(request_id, project, tool),
    )
    return McpExecutor(tools, sessions, claim, bound)


def _web_search(create_request: CreateRequest, uid: str) -> ToolExecutor | None:
    del uid
    tool, setting = declared_tool(create_request.tools, WEB_SEARCH_TYPES), settings.RESPONSES_WEB_SEARCH
    if tool is None or not setting:
        return None
    from responses_app.tools.web_search.opening import open_web_search

    return open_web_search(tool, setting, create_request.project, ToolLimits.from_settings())


def _code_interpreter(create_request: CreateRequest, uid: str) -> ToolExecutor | None:
    tool = declared_tool(create_request.tools, CODE_INTERPRETER_TYPES)
    # Without a sandbox the request is refused, when the planner checks what the tools refer to.
    if tool is None or not sandbox_access.is_configured():
        return None
    session = ContainerSession(
        create_request.project, tool["container"], f"cntr_{uid.partition('_')[2]}", sandbox_access.sandbox_client(), new_id
    )
    return CodeInterpreterExecutor(session, ToolLimits.from_settings())


def _file_search(create_request: CreateRequest, uid: str) -> ToolExecutor | None:
    del uid
    tool = declared_tool(create_request.tools, FILE_SEARCH_TYPES)
    if tool is None:
        return None
    from responses_app.tools.file_search.executor import FileSearchExecutor

    path = f"tools[{list(create_request.tools).index(tool)}]"
    return FileSearchExecutor(tool, create_request.project, ToolLimits.from_settings(), path)


# Each returns the executor of a tool for a request and the id of the response; None if the request has no such tool.
EXECUTORS: Sequence[Callable[[CreateRequest, str], ToolExecutor | None]] = (
    _mcp,
    _code_interpreter,
    _web_search,
    _file_search,
)
