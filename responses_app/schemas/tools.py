"""Schemas of the tools of a request, a class for each tool type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.schemas.client_items import LocalEnvironment
from responses_app.tools.registry import SERVER_TYPES
from responses_app.validation.base import NAME, Array, StrictModel

Name = Annotated[str, Field(min_length=1, max_length=64, pattern=NAME)]
# Anthropic's API has names of this length: clients put the names of an MCP server and of its tool together.
LongName = Annotated[str, Field(min_length=1, max_length=128, pattern=NAME)]
MAX_GRAMMAR_LENGTH = 32_768


class FunctionTool(StrictModel):
    """Function that the client runs."""

    type: Literal["function"]
    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    output_schema: dict[str, Any] | None = None
    async_: bool = Field(default=False, alias="async")
    defer_loading: bool = False
    # Only direct calls by the model exist here; other callers are rejected.
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class LongNamedFunction(FunctionTool):
    """Function of Messages."""

    name: LongName


class CustomTextFormat(StrictModel):
    """`format` of a custom tool that takes any text."""

    type: Literal["text"]


class GrammarFormat(StrictModel):
    """`format` of a custom tool with a grammar for the input."""

    type: Literal["grammar"]
    syntax: Literal["lark", "regex"]
    definition: str


class CustomTool(StrictModel):
    """Custom tool: the client runs a tool on free text."""

    type: Literal["custom"]
    name: Name
    description: str | None = None
    format: Any = None
    async_: bool = Field(default=False, alias="async")
    defer_loading: bool = False
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class ShellTool(StrictModel):
    """Shell that the client runs."""

    type: Literal["shell"]
    environment: LocalEnvironment | None = None
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class LocalShellTool(StrictModel):
    """Shell that the client runs, in the first version of the API."""

    type: Literal["local_shell"]


class ApplyPatchTool(StrictModel):
    """Patches of files that the client applies."""

    type: Literal["apply_patch"]
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class ToolSearchTool(StrictModel):
    """Search for deferred tools, run by the client. With `server` there is no search: deferred tools are offered from the start."""

    type: Literal["tool_search"]
    execution: Literal["client", "server"] | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ComputerTool(StrictModel):
    """Computer of the client: mouse, keyboard and screen."""

    type: Literal["computer"]


class ComputerPreviewTool(StrictModel):
    """Computer of the client, in the first version of the API."""

    type: Literal["computer_use_preview"]
    display_height: Annotated[int, Field(ge=1)]
    display_width: Annotated[int, Field(ge=1)]
    environment: Literal["windows", "mac", "linux", "ubuntu", "browser"]


class NamespaceTool(StrictModel):
    """Namespace: tools under a common name."""

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

# Types of server tools in the API of OpenAI.
API_SERVER_TOOLS = SERVER_TYPES | {"image_generation", "programmatic_tool_calling"}
