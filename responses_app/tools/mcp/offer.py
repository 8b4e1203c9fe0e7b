"""Offer of MCP tools to the model: functions, the openings of calls, and the choice of tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from responses_app.dialects.base import UnsupportedInput
from responses_app.protocol.deltas import Delta, McpApprovalRequest, McpCall
from responses_app.tools.base import Json
from responses_app.tools.mcp import filters
from responses_app.tools.mcp.function_names import function_name


class McpOffer:
    """MCP tools that the model may call. `tools` are the `mcp` tools of the request, `listings` the listed tools; both by label.

    `on_call` gets the label of the server when the model begins to write a call that needs no approval. `id_endings` are the endings
    of ids of approval requests, by label.
    """

    def __init__(
        self,
        tools: Mapping[str, Json],
        listings: Mapping[str, Sequence[Json]],
        on_call: Callable[[str], None] | None = None,
        id_endings: Mapping[str, str] | None = None,
    ) -> None:
        self._tools, self._on_call, self._id_endings = tools, on_call, id_endings or {}
        self._listed = {
            (label, one["name"]): one
            for label, tool in tools.items()
            for one in listings.get(label, ())
            if filters.is_allowed(one, tool.get("allowed_tools"))
        }
        self._names = {function_name(label, name): (label, name) for label, name in self._listed}

    @property
    def functions(self) -> list[Json]:
        """Functions of the tools, in the order of the servers."""
        return [
            {
                "type": "function",
                "name": function,
                "description": self._description(*key),
                "parameters": self._listed[key]["input_schema"],
                "strict": False,
            }
            for function, key in self._names.items()
        ]

    def tool(self, label: str, name: str) -> Json | None:
        """Return the listed tool; None if there is no such tool, or if the request does not allow the tool."""
        return self._listed.get((label, name))

    def opening(self, function: str) -> Delta | None:
        """Return the opening of a call, or the request for an approval; None for functions of the client.

        An unknown name that begins with the label of a server opens a call too, which fails: then the model learns of its mistake.
        """
        label, name = self._names.get(function) or self._guess(function)
        if label is None:
            return None
        tool = self.tool(label, name)
        if tool is not None and filters.needs_approval(tool, self._tools[label].get("require_approval", "always")):
            return McpApprovalRequest(label, name, "", self._id_endings.get(label, ""))
        if tool is not None and self._on_call is not None:
            self._on_call(label)
        return McpCall(label, name)

    def tool_choice(self, choice: str | Json) -> str | Json:
        """Return `choice` with functions in place of MCP tools, without allowed tools that no server has.

        Raises UnsupportedInput if a call is required and none of the chosen tools is there.
        """
        if isinstance(choice, str):
            return choice
        if choice.get("type") == "mcp":
            return {"type": "allowed_tools", "mode": "required", "tools": self._required([choice])}
        if choice.get("type") != "allowed_tools":
            return choice
        chosen = self._required(choice["tools"]) if choice.get("mode") == "required" else self._chosen(choice["tools"])
        return {**choice, "tools": chosen}

    def _required(self, entries: Sequence[Json]) -> list[Json]:
        """Return the functions of `entries`. Raises UnsupportedInput if there is none."""
        chosen = self._chosen(entries)
        if not chosen:
            # Without a function every entry is an `mcp` entry.
            names = ", ".join(repr(".".join(filter(None, (one["server_label"], one.get("name"))))) for one in entries)
            raise UnsupportedInput(
                f"The MCP servers do not offer what 'tool_choice' requires: {names}.", "tool_choice", "invalid_value"
            )
        return chosen

    def _chosen(self, entries: Sequence[Json]) -> list[Json]:
        return [one for entry in entries for one in (self._named(entry) if entry["type"] == "mcp" else [entry])]

    def _named(self, entry: Json) -> Iterator[Json]:
        """Yield the functions of an `mcp` entry."""
        label, name = entry["server_label"], entry.get("name")
        for function, key in self._names.items():
            if key[0] == label and name in (None, key[1]):
                yield {"type": "function", "name": function}

    def _description(self, label: str, name: str) -> str | None:
        """Return the description of a tool, with the description of the server in front."""
        parts = (self._tools[label].get("server_description"), self._listed[label, name].get("description"))
        return "\n\n".join(part for part in parts if part) or None

    def _guess(self, function: str) -> tuple[str | None, str]:
        label = next((one for one in self._tools if function.startswith(f"{one}__")), None)
        return label, "" if label is None else function[len(label) + 2 :]
