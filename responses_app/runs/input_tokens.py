"""Input tokens of a request: the length of the first prompt, with the tools that MCP servers list."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from responses_app.errors import InvalidRequest
from responses_app.protocol.deltas import Delta, McpList, McpTools
from responses_app.protocol.items.base import Item
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.endings import INVALID_PROMPT
from responses_app.runs.execute.round_planner import RoundPlanner
from responses_app.runs.ids import new_id
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare.planner import plan
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.tools.base import ToolExecutor

logger = logging.getLogger("responses.tools")


async def count_input_tokens(uid: str, create_request: CreateRequest, served: ServedModel, tools: ToolExecutor | None) -> int:
    """Count the tokens of the first prompt of the response `uid`. Raises ApiError as a create does. Nothing is stored.

    MCP servers without a list in the context are listed. Approved calls are not made, so their outputs are not counted.
    """
    try:
        planned = await plan(PromptContext(uid, create_request, served, tools, measure=True))
        request = planned.request
        if tools is not None and planned.context.openings:
            planner = RoundPlanner(planned)
            listings = await _listings(planner, tools, planned.context.openings)
            try:
                request, _ = await planner.plan(1, listings, 0, measure=True)
            except InvalidRequest as error:
                # A create fails with this code, as the listing is in its output.
                raise InvalidRequest(error.message, code=INVALID_PROMPT) from error
        return request.length or len(request.prompt)
    finally:
        if tools is not None:
            await tools.close()


async def _listings(planner: RoundPlanner, tools: ToolExecutor, openings: Sequence[Delta]) -> list[Item]:
    """List the tools of the servers that `openings` name, side by side."""
    labels = [opening.server_label for opening in openings if isinstance(opening, McpList)]
    return await asyncio.gather(*(_listing(planner, tools, label) for label in labels))


async def _listing(planner: RoundPlanner, tools: ToolExecutor, label: str) -> Item:
    """Return the item of a listing. A server that fails has an `error`, as in a response."""
    item: Item = {"type": "mcp_list_tools", "id": new_id("mcpl_"), "server_label": label, "tools": [], "error": None}
    try:
        result = await planner.check_listing(item, await tools.run(item, lambda _: None))
    except Exception as error:
        # As for a call of a response: no failure of a tool fails the request.
        logger.exception("%s: listing failed", label)
        result = tools.failure(item, f"The tool failed: {type(error).__name__}.")
    assert isinstance(result, McpTools)  # noqa: S101 - the result of a listing
    return {**item, "tools": result.tools, "error": result.error}
