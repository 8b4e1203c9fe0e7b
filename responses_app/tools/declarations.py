"""Declarations of built-in tools in a request."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from django.conf import settings

CODE_INTERPRETER_TYPES: Final = frozenset({"code_interpreter"})
FILE_SEARCH_TYPES: Final = frozenset({"file_search"})
WEB_SEARCH_TYPES: Final = frozenset(
    {"web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"}
)


def is_cached_search(tool: Mapping[str, Any]) -> bool:
    """Return True for a web search without access to the web. The response repeats the tool, and the model is not offered it.

    Codex adds such a tool to its requests; a refusal would refuse the whole of Codex.
    """
    return tool["type"] in WEB_SEARCH_TYPES and tool.get("external_web_access") is False


def declared_tool(tools: Sequence[Mapping[str, Any]], types: Collection[str]) -> Mapping[str, Any] | None:
    """Return the tool of one of `types` that the server runs for a request; None without such a tool.

    A tool whose type RESPONSES_INACTIVE_TOOLS names is left out, and a web search without access to the web.
    """
    active = set(types) - settings.RESPONSES_INACTIVE_TOOLS
    return next((tool for tool in tools if tool["type"] in active and not is_cached_search(tool)), None)
