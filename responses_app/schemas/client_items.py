"""Schemas of calls and outputs of the API's own tools that the client runs: shell, patch, tool search, computer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.validation.base import IMAGE_URL_LIMIT, Array, Caller, CallId, LongText, Status, StrictModel

StringList = Annotated[Array[LongText], Field(max_length=1024)]


class ShellAction(StrictModel):
    """Commands of a shell call."""

    commands: StringList
    timeout_ms: int | None = None
    max_output_length: int | None = None


class LocalEnvironment(StrictModel):
    """Environment of a shell tool: the client's own machine, as this server has no containers."""

    type: Literal["local"]
    skills: Annotated[list[Any], Field(max_length=0)] | None = None


class PastEnvironment(StrictModel):
    """Environment of an earlier shell call: the client's machine, or a container of another server."""

    type: Literal["local", "container_reference"]
    container_id: str | None = None
    skills: list[Any] | None = None


class ShellCallInput(StrictModel):
    """Shell call of the model."""

    type: Literal["shell_call"]
    id: str | None = None
    call_id: CallId
    action: ShellAction
    environment: PastEnvironment | None = None
    status: Status | None = None
    caller: Caller | None = None
    created_by: str | None = None


class CommandOutcome(StrictModel):
    """End of a command: exit code or timeout."""

    type: Literal["exit", "timeout"]
    exit_code: int | None = None


class ShellResult(StrictModel):
    """Output of a single command."""

    stdout: LongText
    stderr: LongText
    outcome: CommandOutcome
    created_by: str | None = None


class ShellCallOutput(StrictModel):
    """Result of a shell call, sent by the client."""

    type: Literal["shell_call_output"]
    id: str | None = None
    call_id: CallId
    output: Array[ShellResult]
    max_output_length: int | None = None
    status: Status | None = None
    caller: Caller | None = None
    created_by: str | None = None


class ExecAction(StrictModel):
    """Command of a local shell call."""

    type: Literal["exec"]
    command: StringList
    env: Annotated[dict[str, str], Field(max_length=1024)] = Field(default_factory=dict)
    timeout_ms: int | None = None
    user: str | None = None
    working_directory: str | None = None


class LocalShellCall(StrictModel):
    """Local shell call of the model."""

    type: Literal["local_shell_call"]
    id: str | None = None
    call_id: CallId
    action: ExecAction
    status: Status | None = None


class LocalShellCallOutput(StrictModel):
    """Result of a local shell call, named by `call_id` or, in the first version of the API, by the item's `id`."""

    type: Literal["local_shell_call_output"]
    id: str | None = None
    call_id: CallId
    output: LongText
    status: Status | None = None


class Operation(StrictModel):
    """Change of a file."""

    type: Literal["create_file", "update_file", "delete_file"]
    path: LongText
    diff: LongText | None = None


class ApplyPatchCallInput(StrictModel):
    """Patch call of the model."""

    type: Literal["apply_patch_call"]
    id: str | None = None
    call_id: CallId
    operation: Operation
    status: Literal["in_progress", "completed"] | None = None
    caller: Caller | None = None
    created_by: str | None = None


class ApplyPatchCallOutput(StrictModel):
    """Result of a patch call, sent by the client."""

    type: Literal["apply_patch_call_output"]
    id: str | None = None
    call_id: CallId
    status: Literal["completed", "failed"]
    output: LongText | None = None
    caller: Caller | None = None
    created_by: str | None = None


class ToolSearchCall(StrictModel):
    """Tool search of the model, run by the client or by another server."""

    type: Literal["tool_search_call"]
    id: str | None = None
    call_id: CallId | None = None
    arguments: Any
    execution: Literal["client", "server"] = "client"
    status: Status | None = None
    created_by: str | None = None


class ToolSearchOutput(StrictModel):
    """Tools found by a tool search; the model may call these tools from this item on."""

    type: Literal["tool_search_output"]
    id: str | None = None
    call_id: CallId | None = None
    execution: Literal["client", "server"] = "client"
    tools: list[Any]
    status: Status | None = None
    created_by: str | None = None


class SafetyCheck(StrictModel):
    """Safety check that a client confirms. This server requests none."""

    id: str
    code: str | None = None
    message: str | None = None


class ComputerCall(StrictModel):
    """Computer call of the model, with an action or a list of actions."""

    type: Literal["computer_call"]
    id: str | None = None
    call_id: CallId
    action: dict[str, Any] | None = None
    actions: Annotated[Array[dict[str, Any]], Field(min_length=1, max_length=1024)] | None = None
    pending_safety_checks: Array[SafetyCheck] = Field(default_factory=list)
    status: Status | None = None


class Screenshot(StrictModel):
    """Screenshot of the client's computer."""

    type: Literal["computer_screenshot"]
    image_url: Annotated[str, Field(max_length=IMAGE_URL_LIMIT)] | None = None
    file_id: str | None = None


class ComputerCallOutput(StrictModel):
    """Result of a computer call: a screenshot."""

    type: Literal["computer_call_output"]
    id: str | None = None
    call_id: CallId
    output: Screenshot
    acknowledged_safety_checks: Array[SafetyCheck] | None = None
    status: Status | None = None
    created_by: str | None = None


CLIENT_ITEMS: Mapping[str, type[StrictModel]] = {
    "shell_call": ShellCallInput,
    "shell_call_output": ShellCallOutput,
    "local_shell_call": LocalShellCall,
    "local_shell_call_output": LocalShellCallOutput,
    "apply_patch_call": ApplyPatchCallInput,
    "apply_patch_call_output": ApplyPatchCallOutput,
    "tool_search_call": ToolSearchCall,
    "tool_search_output": ToolSearchOutput,
    "computer_call": ComputerCall,
    "computer_call_output": ComputerCallOutput,
}
