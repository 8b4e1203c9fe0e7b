"""Types of the anthropic package, which vLLM brings along."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pydantic import TypeAdapter

_TYPES, _BETA = import_module("anthropic.types"), import_module("anthropic.types.beta")
EVENTS: TypeAdapter[Any] = TypeAdapter(_TYPES.RawMessageStreamEvent)
# The stable types know no calls of MCP servers.
BETA_EVENTS: TypeAdapter[Any] = TypeAdapter(_BETA.BetaRawMessageStreamEvent)
MESSAGE: TypeAdapter[Any] = TypeAdapter(_TYPES.Message)
BETA_MESSAGE: TypeAdapter[Any] = TypeAdapter(_BETA.BetaMessage)
MODEL: TypeAdapter[Any] = TypeAdapter(_TYPES.ModelInfo)


def request_fields() -> set[str]:
    """Return the fields of a request that the package knows, with those of its beta."""
    stable = import_module("anthropic.types.message_create_params").MessageCreateParamsBase
    return set(stable.__annotations__) | {"mcp_servers", "context_management", "stream"}
