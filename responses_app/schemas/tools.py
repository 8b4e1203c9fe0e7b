"""The shapes of tools in a request, type by type (§1.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.schemas.base import NAME, Array, StrictModel
from responses_app.schemas.client_items import LocalEnvironment

Name = Annotated[str, Field(min_length=1, max_length=64, pattern=NAME)]
LONGEST_GRAMMAR = 32_768


class FunctionTool(StrictModel):
    """A function that the client runs."""

    type: Literal["function"]
    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    output_schema: dict[str, Any] | None = None
    async_: bool = Field(default=False, alias="async")
    defer_loading: bool = False
    # That is how it is here anyway; anything else is refused.
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class CustomTextFormat(StrictModel):
    """The `format` of a custom tool that takes any text."""

    type: Literal["text"]


class GrammarFormat(StrictModel):
    """The `format` of a custom tool whose text follows a grammar."""

    type: Literal["grammar"]
    syntax: Literal["lark", "regex"]
    definition: Annotated[str, Field(max_length=LONGEST_GRAMMAR)]


class CustomTool(StrictModel):
    """A tool that the client runs on a text."""

    type: Literal["custom"]
    name: Name
    description: str | None = None
    format: Any = None
    async_: bool = Field(default=False, alias="async")
    defer_loading: bool = False
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class ShellTool(StrictModel):
    """The client's shell."""

    type: Literal["shell"]
    environment: LocalEnvironment | None = None
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class LocalShellTool(StrictModel):
    """The client's shell in the protocol's first form."""

    type: Literal["local_shell"]


class ApplyPatchTool(StrictModel):
    """Changes of the client's files."""

    type: Literal["apply_patch"]
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class ToolSearchTool(StrictModel):
    """A search for deferred tools, which the client makes."""

    type: Literal["tool_search"]
    execution: Literal["client"]
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ComputerTool(StrictModel):
    """The client's computer: its mouse, its keyboard and its screen."""

    type: Literal["computer"]


class ComputerPreviewTool(StrictModel):
    """The client's computer in the protocol's first form."""

    type: Literal["computer_use_preview"]
    display_height: Annotated[int, Field(ge=1)]
    display_width: Annotated[int, Field(ge=1)]
    environment: Literal["windows", "mac", "linux", "ubuntu", "browser"]


class NamespaceTool(StrictModel):
    """Tools with a name in common."""

    type: Literal["namespace"]
    name: Name
    description: str | None = None
    tools: Annotated[list[Any], Field(min_length=1, max_length=128)]


CLIENT: Mapping[str, type[StrictModel]] = {
    "shell": ShellTool,
    "local_shell": LocalShellTool,
    "apply_patch": ApplyPatchTool,
    "tool_search": ToolSearchTool,
    "computer": ComputerTool,
    "computer_use_preview": ComputerPreviewTool,
}

# Tool types of the protocol that this server does not run or pass on.
HOSTED = frozenset(
    {
        "code_interpreter",
        "file_search",
        "image_generation",
        "mcp",
        "programmatic_tool_calling",
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    }
)
