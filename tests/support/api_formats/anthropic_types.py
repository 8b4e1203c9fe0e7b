"""Types of the anthropic package."""

from __future__ import annotations

from typing import Any

from anthropic.types import Message, ModelInfo, RawMessageStreamEvent
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsBase
from pydantic import TypeAdapter

EVENTS: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
# The stable types know no calls of MCP servers.
BETA_EVENTS: TypeAdapter[Any] = TypeAdapter(BetaRawMessageStreamEvent)
MESSAGE: TypeAdapter[Any] = TypeAdapter(Message)
BETA_MESSAGE: TypeAdapter[Any] = TypeAdapter(BetaMessage)
MODEL: TypeAdapter[Any] = TypeAdapter(ModelInfo)


def request_fields() -> set[str]:
    """Return the fields of a request that the package knows, with those of its beta."""
    return set(MessageCreateParamsBase.__annotations__) | {"mcp_servers", "context_management", "stream"}
