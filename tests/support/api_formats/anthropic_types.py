"""Types of the anthropic package. Its import takes two seconds of CPU, so that it is left to the tests that need it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter


def validate(name: str, data: bytes, *, beta: bool = False) -> None:
    """Validate JSON with a type of the package, of its beta on request. Raises ValidationError.

    The stable types know no calls of MCP servers.
    """
    _adapter(f"Beta{name}" if beta else name).validate_json(data, strict=True)


def request_fields() -> set[str]:
    """Return the fields of a request that the package knows, with those of its beta."""
    params = import_module("anthropic.types.message_create_params").MessageCreateParamsBase
    return set(params.__annotations__) | {"mcp_servers", "context_management", "stream"}


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    types = import_module("anthropic.types.beta" if name.startswith("Beta") else "anthropic.types")
    return TypeAdapter(getattr(types, name))
