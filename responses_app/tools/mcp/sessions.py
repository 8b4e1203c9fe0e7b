"""Sessions of a run with MCP servers: opened at the first use, closed or kept at the end of the run."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
from cachetools import TTLCache

from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp.errors import MAX_INTEGER, McpError
from responses_app.tools.mcp.redaction import redact_json
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.session_pool import forget_pools, session_pool
from responses_app.tools.outputs.truncation import truncate_to_bytes
from responses_app.utils.shares import ShareExceeded, shares_of
from responses_app.validation.json_body import MAX_DEPTH, has_more_levels

if TYPE_CHECKING:
    from responses_app.tools.mcp.session import McpSession


@dataclass(frozen=True, slots=True)
class McpOutcome:
    """Result of a call: an output, or an error object."""

    output: str | None = None
    error: Json | None = None


def outcome(content: Sequence[Json], structured: object, max_bytes: int, *, is_error: bool) -> McpOutcome:
    """Return the outcome of a result with the parts `content` and the value `structured`.

    Texts are joined by line breaks. A structured value counts only without text. With other parts the output is the JSON of all
    parts. At most `max_bytes` bytes of texts and parts stay; a notice names the rest.
    """
    if is_error:
        shown = [part if _is_storable(part) else {"type": "text", "text": _dump(part)} for part in _bounded(content, max_bytes)]
        return McpOutcome(error={"type": "mcp_tool_execution_error", "content": shown})
    if all(part["type"] == "text" for part in content):
        text = "\n".join(part["text"] for part in content)
        if not text and structured is not None:
            text = _dump(structured)
        return McpOutcome(cut(text, max_bytes))
    return McpOutcome(_dump(_bounded(content, max_bytes)))


def cut(text: str, max_bytes: int) -> str:
    """Return the first `max_bytes` bytes of `text`, with a notice if something was cut."""
    start, count = truncate_to_bytes(text, max_bytes)
    return f"{start}\n[… {count:,} more characters were cut]" if count else text


def _bounded(parts: Sequence[Json], max_bytes: int) -> list[Json]:
    """Cut texts, and replace other parts by notices, behind `max_bytes` bytes of all parts."""
    shown, left = list[Json](), max_bytes
    for part in parts:
        size = len(_dump(part).encode("utf-8", "surrogatepass"))
        if size <= left:
            shown.append(part)
        elif part["type"] == "text":
            shown.append({"type": "text", "text": cut(part["text"], max(left, 0))})
        else:
            kind = " ".join(str(part[key]) for key in ("type", "mimeType") if key in part)
            notice = f"[A part was left out because the result is too long: {kind}, {size:,} bytes]"
            shown.append({"type": "text", "text": notice})
            continue
        left -= min(size, left)
    return shown


def _is_storable(part: Json) -> bool:
    """Return False for a part with an integer that JSON of events cannot have, such as the size of a link."""
    return all(not isinstance(value, int) or abs(value) < MAX_INTEGER for value in part.values())


def _dump(value: object) -> str:
    """Return JSON; integers of any size are possible."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


Json: TypeAlias = Mapping[str, Any]

SESSION_MODULE = "responses_app.tools.mcp.session"
# Seconds for which a list of tools is used again, and lists in the memory of a process.
LIST_CACHE_S = 300
LIST_CACHE_SIZE = 64
# Sessions that a process begins to open at a time, for about OPENING_S seconds each: an opening takes 7 ms of the event loop.
# Projects take turns, so that a project with many sessions delays no other. Slow servers do not delay the next.
OPENINGS = 2
OPENING_S = 0.25
BUSY = "Too many sessions with MCP servers are opened by this project. Try again in a moment."
# Bytes of all schemas of a server, as JSON.
MAX_SCHEMA_BYTES = 1024 * 1024
# A client can send a listing back: a body of 100 levels, with five around each schema. Renderers of prompts have limits too.
MAX_SCHEMA_LEVELS = MAX_DEPTH - 5

_imported: dict[str, type[McpSession]] = {}
_lists: TTLCache[bytes, bytes] = TTLCache(LIST_CACHE_SIZE, LIST_CACHE_S, time.monotonic)


def clear_cache() -> None:
    """Forget all lists of tools, the protocols of all servers, and the session pools."""
    from responses_app.tools.mcp.transport.handshake import forget_all

    _lists.clear()
    forget_all()
    forget_pools()


class McpSessions:
    """Sessions with `servers`, by label. Lists of tools are cached by server, credentials and `project`."""

    def __init__(self, servers: Mapping[str, McpServer], limits: ToolLimits, project: str) -> None:
        self._servers, self._limits, self._project = servers, limits, project
        self._sessions: dict[str, McpSession] = {}
        # Sessions whose connections broke: they are closed with the others, as calls may still end in them.
        self._broken: list[McpSession] = []
        self._locks = {label: asyncio.Lock() for label in servers}
        self._list_locks = {label: asyncio.Lock() for label in servers}
        # Openings that no call waits for yet, and their failures by label.
        self._preparations: set[asyncio.Task[None]] = set()
        self._failures: dict[str, McpError] = {}

    async def list_tools(self, label: str, *, use_cache: bool = True) -> Sequence[Json]:
        """Return the tools of a server as `mcp_list_tools` shows these. Raises McpError."""
        key = hashlib.sha256(orjson.dumps(self._project) + self._servers[label].identity).digest()
        # A listing and an approved call begin side by side, and need a single request.
        async with self._list_locks[label]:
            data = _lists.get(key) if use_cache else None
            if data is None:
                listed = await self._list(await self._session(label))
                data = _lists[key] = orjson.dumps(redact_json(listed, self._servers[label].redact))
            # As objects a list could take 24 times the memory.
            tools: Sequence[Json] = orjson.loads(data)
            return tools

    async def call(
        self,
        label: str,
        name: str,
        arguments: Json,
        report_progress: Callable[[], None] | None = None,
        *,
        is_repeatable: bool = False,
    ) -> McpOutcome:
        """Call a tool and return the outcome. `report_progress` is called at each progress notification. Raises McpError.

        A call that the server refused because it has lost the session is made once more, in a new session. So is a call with
        `is_repeatable` whose connection was lost.
        """
        session = await self._session(label)
        try:
            result = await session.call(name, arguments, report_progress)
        except McpError as error:
            if not (error.is_session_lost or (error.is_connection_lost and is_repeatable)):
                raise
            result = await (await self._session(label)).call(name, arguments, report_progress)
        redact = self._servers[label].redact
        content = [part.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"}) for part in result.content]
        content = [
            {**part, "text": redact(part["text"])} if part["type"] == "text" else redact_json(part, redact) for part in content
        ]
        structured = result.structured_content
        if structured is not None:
            structured = redact_json(structured, redact)
        return outcome(content, structured, self._limits.result_bytes, is_error=bool(result.is_error))

    def prepare(self, label: str) -> None:
        """Begin to open a session for a call that the model still writes. A failure is raised at the call."""
        if not self.is_open(label) and not self._locks[label].locked():
            task = asyncio.get_running_loop().create_task(self._prepare(label))
            self._preparations.add(task)
            task.add_done_callback(self._preparations.discard)

    def is_open(self, label: str) -> bool:
        """Return whether there is an open session with the server."""
        return label in self._sessions and self._sessions[label].is_open

    async def close(self, *, keep_programs: bool = False) -> None:
        """Close all sessions, side by side. With `keep_programs` the next run of the project may use sessions with programs."""
        for task in (preparations := [*self._preparations]):
            task.cancel()
        await asyncio.gather(*preparations, return_exceptions=True)
        sessions = [*self._sessions.values(), *self._broken]
        self._sessions, self._broken = {}, []
        reusable = [session for session in sessions if keep_programs and session.is_reusable]
        for session in reusable:
            session_pool().put(self._project, session)
        await asyncio.gather(*(session.close() for session in sessions if session not in reusable))

    async def _prepare(self, label: str) -> None:
        try:
            await self._session(label)
        except McpError as error:
            self._failures[label] = error

    async def _session(self, label: str) -> McpSession:
        """Return an open session. Raises McpError."""
        async with self._locks[label]:
            if label in self._failures:
                raise self._failures.pop(label)
            session = self._sessions.get(label)
            if session is not None and session.is_open:
                return session
            if session is not None:
                self._broken.append(session)
            server = self._servers[label]
            if pooled := session_pool().take(self._project, server):
                pooled.reuse(server, self._limits)
                self._sessions[label] = pooled
                return pooled
            session = self._sessions[label] = (await import_session_type())(server, self._limits)
            try:
                async with shares_of("MCP sessions", OPENINGS).place(self._project, OPENING_S):
                    await session.open()
            except ShareExceeded:
                raise McpError(BUSY) from None
            return session

    async def _list(self, session: McpSession) -> list[Json]:
        tools, cursor, limits = list[Json](), None, self._limits
        for _ in range(limits.list_pages):
            page = await session.list_page(cursor)
            tools += [_tool(one.model_dump(mode="json", by_alias=True, exclude_none=True)) for one in page.tools]
            if len(tools) > limits.mcp_tools:
                raise McpError(f"The MCP server has more than {limits.mcp_tools} tools, which is the limit.")
            cursor = page.next_cursor
            if cursor is None:
                break
        else:
            raise McpError(f"The MCP server lists its tools in more than {limits.list_pages} pages, which is the limit.")
        _check_size(tools)
        return list({tool["name"]: tool for tool in reversed(tools)}.values())[::-1]


async def import_session_type() -> type[McpSession]:
    """Import the client library at the first use, in a thread: the second that it takes would stop all streams."""
    if SESSION_MODULE not in _imported:
        _imported[SESSION_MODULE] = (await asyncio.to_thread(importlib.import_module, SESSION_MODULE)).McpSession
    return _imported[SESSION_MODULE]


def _check_size(tools: Sequence[Json]) -> None:
    """Check the length of all schemas, and the levels of each. Raises McpError."""
    try:
        size = len(orjson.dumps(tools))
    except orjson.JSONEncodeError as error:
        raise McpError(f"The MCP server lists a schema that cannot be stored: {error}.") from None
    if has_more_levels(tools, MAX_SCHEMA_LEVELS + 2):
        raise McpError(
            f"The MCP server lists a schema with more than {MAX_SCHEMA_LEVELS} levels of nesting, which is the limit."
        )
    if size > MAX_SCHEMA_BYTES:
        raise McpError(f"The MCP server lists tools with {size:,} bytes of schemas; the limit is {MAX_SCHEMA_BYTES:,}.")


def _tool(raw: Json) -> Json:
    """Return a tool as `mcp_list_tools` shows it; absent values are left out."""
    shown = {"name": raw["name"], "input_schema": raw["inputSchema"]}
    shown |= {key: raw[key] for key in ("description", "annotations") if raw.get(key)}
    return shown
