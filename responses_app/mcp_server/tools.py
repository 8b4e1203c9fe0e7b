"""Tools of the MCP server of the log: arguments, descriptions, and the functions that read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import orjson
from asgiref.sync import sync_to_async
from pydantic import BaseModel, ConfigDict, Field

from responses_app.errors import NotFound
from responses_app.mcp_server import comparison, prompts
from responses_app.models import Direction, Response
from responses_app.runs.ids import is_id
from responses_app.store import response_list
from responses_app.store.log import reader
from responses_app.store.response_list import ResponseFilter
from responses_app.web.responses.rows import excerpts
from responses_app.web.responses.search import search_indexed
from responses_app.wire.event_stream import partial_snapshot

# Pages of events that are searched for types.
MAX_EVENT_PAGES: Final = 20
Uid = Annotated[str, Field(max_length=128, description="Id of a response, resp_…")]
Moment = Annotated[datetime | None, Field(description="ISO 8601; without a zone it is UTC")]


class LogToolArguments(BaseModel):
    """Arguments of a tool; unknown arguments are refused."""

    model_config = ConfigDict(extra="forbid")


class FindArguments(LogToolArguments):
    """Arguments of `find_responses`."""

    text: Annotated[str | None, Field(max_length=500, description="Words in the input or output")] = None
    model: Annotated[str | None, Field(max_length=200)] = None
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"] | None = None
    conversation: Annotated[str | None, Field(max_length=128)] = None
    metadata: Annotated[dict[str, str], Field(max_length=16)] = {}
    created_after: Moment = None
    created_before: Moment = None
    after: Annotated[str | None, Field(max_length=128, description="Id of the last response of the page before")] = None
    limit: Annotated[int, Field(ge=1, le=50)] = 20


class ReadArguments(LogToolArguments):
    """Arguments of `read_response`."""

    id: Uid
    first_item: Annotated[int, Field(ge=0, description="Index of the first output item to return")] = 0


class EventArguments(LogToolArguments):
    """Arguments of `read_events`."""

    id: Uid
    after: Annotated[int, Field(ge=-1, lt=2**31, description="Sequence number of the last event read before")] = -1
    types: Annotated[list[str], Field(max_length=20, description="Event types; empty for all but deltas")] = []
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class PromptArguments(LogToolArguments):
    """Arguments of `read_prompt`."""

    id: Uid
    round: Annotated[int, Field(ge=1, lt=2**31)] = 1
    first_token: Annotated[int, Field(ge=0, lt=2**31)] = 0


class CompareArguments(LogToolArguments):
    """Arguments of `compare_responses`."""

    first: Uid
    second: Uid


@dataclass(frozen=True, slots=True)
class LogTool:
    """Tool: what the agent is told, the schema of the arguments, and the function of project and arguments."""

    description: str
    arguments: type[LogToolArguments]
    call: Callable[[str, Any], Awaitable[Any]]


async def find_responses(project: str, arguments: FindArguments) -> dict[str, Any]:
    """Return a page of responses, newest first. Raises NotFound for an unknown `after`."""
    keys = await sync_to_async(search_indexed)(_clean(arguments.text), [project]) if arguments.text else None
    if arguments.text and keys is None:
        return {"responses": [], "more": False, "problem": "The words are too frequent. Use rarer words or a time."}
    filters = ResponseFilter(
        model=arguments.model and _clean(arguments.model),
        status=arguments.status,
        conversation=arguments.conversation and _clean(arguments.conversation),
        metadata={_clean(name): _clean(value) for name, value in arguments.metadata.items()},
        since=_utc(arguments.created_after),
        until=_utc(arguments.created_before),
        keys=keys,
    )
    known = arguments.after is None or is_id(arguments.after)
    page = (
        await response_list.page(project, filters, limit=arguments.limit, newest_first=True, after=arguments.after)
        if known
        else None
    )
    if page is None:
        raise NotFound(f"No response found with id '{arguments.after}'.")
    rows = [row for row, _ in page.rows]
    texts = await sync_to_async(excerpts)([row.pk for row in rows])
    return {"responses": [_summary(row, texts) for row in rows], "more": page.more}


async def read_response(project: str, arguments: ReadArguments) -> dict[str, Any]:
    """Return the response object, with the output from `first_item` on. Raises NotFound."""
    row = await _find(project, arguments.id)
    snapshot: dict[str, Any] = orjson.loads(await reader.snapshot(row.pk) or await partial_snapshot(row))
    output = snapshot.get("output") or []
    return {**snapshot, "output": output[arguments.first_item :], "output_items": len(output)}


async def read_events(project: str, arguments: EventArguments) -> dict[str, Any]:
    """Return events with numbers above `after`. Raises NotFound."""
    row = await _find(project, arguments.id)
    events, after = list[dict[str, Any]](), arguments.after
    for _ in range(MAX_EVENT_PAGES):
        frames = await reader.frames(row.pk, after)
        if not frames:
            return {"events": events, "more": False}
        for frame in frames:
            after = frame.number
            if frame.type in arguments.types if arguments.types else not frame.type.endswith(".delta"):
                events.append({"number": frame.number, "ms": frame.ms, "event": _event(frame.data)})
            if len(events) == arguments.limit:
                return {"events": events, "more": True, "next_after": after}
    return {"events": events, "more": True, "next_after": after}


async def read_prompt(project: str, arguments: PromptArguments) -> dict[str, Any]:
    """Return a part of the prompt of a round. Raises NotFound."""
    row = await _find(project, arguments.id)
    return await sync_to_async(prompts.read_prompt)(row, arguments.round, arguments.first_token)


async def compare_responses(project: str, arguments: CompareArguments) -> dict[str, Any]:
    """Return the differences of two responses. Raises NotFound."""
    first, second = await _find(project, arguments.first), await _find(project, arguments.second)
    return await sync_to_async(comparison.compare_responses)(first, second)


TOOLS: Final = {
    "find_responses": LogTool(
        "Find logged responses, newest first, with status, model, tokens, time and the beginnings of input and output.",
        FindArguments,
        find_responses,
    ),
    "read_response": LogTool(
        "Read a response: parameters, tools, usage, error, and its output items.", ReadArguments, read_response
    ),
    "read_events": LogTool(
        "Read the stream events of a response with their milliseconds since its creation. Deltas are left out unless named in types.",
        EventArguments,
        read_events,
    ),
    "read_prompt": LogTool(
        "Read the exact prompt that the model got, as text with special tokens. Each round of tool calls has its own prompt.",
        PromptArguments,
        read_prompt,
    ),
    "compare_responses": LogTool(
        "Compare two responses: request, usage, words, output items, arguments of calls, prompts, and why the prefix cache was missed.",
        CompareArguments,
        compare_responses,
    ),
}


async def _find(project: str, uid: str) -> Response:
    row = await response_list.visible(project).filter(uid=uid).afirst() if is_id(uid) else None
    if row is None:
        raise NotFound(f"Response with id '{uid}' not found.")
    return row


def _summary(row: Response, texts: dict[tuple[int, str], str]) -> dict[str, Any]:
    return {
        "id": row.uid,
        "created_at": row.created_at,
        "status": row.status,
        "model": row.model,
        "error_code": row.error_code or None,
        "input": texts.get((row.pk, Direction.INPUT), ""),
        "output": texts.get((row.pk, Direction.OUTPUT), ""),
        "tools": row.tools,
        "input_tokens": row.input_tokens,
        "cached_tokens": row.cached_tokens,
        "output_tokens": row.output_tokens,
        "seconds": (row.ended_at - row.created_at).total_seconds() if row.ended_at else None,
        "previous_response_id": row.previous_uid,
        "metadata": row.metadata,
    }


def _event(data: bytes) -> dict[str, Any]:
    """Return an event; the output of snapshots is left out."""
    event: dict[str, Any] = orjson.loads(data)
    if isinstance(event.get("response"), dict):
        event["response"] = {
            name: event["response"].get(name) for name in ("id", "status", "error", "incomplete_details", "usage")
        }
    return event


def _clean(text: str) -> str:
    # Postgres cannot store NUL.
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _utc(moment: datetime | None) -> datetime | None:
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)
