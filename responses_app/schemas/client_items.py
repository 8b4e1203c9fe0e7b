"""Items of the tools that the protocol names and the client runs: calls of shells, patches and searches, and what they gave back (§1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.schemas.base import IMAGE_URL_LIMIT, Array, Caller, CallId, LongText, Status, StrictModel

StringList = Annotated[Array[LongText], Field(max_length=1024)]


class ShellAction(StrictModel):
    """What a shell was to do."""

    commands: StringList
    timeout_ms: int | None = None
    max_output_length: int | None = None


class LocalEnvironment(StrictModel):
    """Where the client runs a shell: on its own machine. Containers of the server there are none."""

    type: Literal["local"]
    skills: Annotated[list[Any], Field(max_length=0)] | None = None


class PastEnvironment(StrictModel):
    """Where a shell ran: on the client's machine, or in a container of another server."""

    type: Literal["local", "container_reference"]
    container_id: str | None = None
    skills: list[Any] | None = None


class ShellCallInput(StrictModel):
    """A call of the client's shell."""

    type: Literal["shell_call"]
    id: str | None = None
    call_id: CallId
    action: ShellAction
    environment: PastEnvironment | None = None
    status: Status | None = None
    caller: Caller | None = None
    created_by: str | None = None


class Outcome(StrictModel):
    """How a command ended."""

    type: Literal["exit", "timeout"]
    exit_code: int | None = None


class ShellResult(StrictModel):
    """What one command printed."""

    stdout: LongText
    stderr: LongText
    outcome: Outcome
    created_by: str | None = None


class ShellCallOutput(StrictModel):
    """What the shell gave back."""

    type: Literal["shell_call_output"]
    id: str | None = None
    call_id: CallId
    output: Array[ShellResult]
    max_output_length: int | None = None
    status: Status | None = None
    caller: Caller | None = None
    created_by: str | None = None


class ExecAction(StrictModel):
    """What a local shell was to do."""

    type: Literal["exec"]
    command: StringList
    env: Annotated[dict[str, str], Field(max_length=1024)] = Field(default_factory=dict)
    timeout_ms: int | None = None
    user: str | None = None
    working_directory: str | None = None


class LocalShellCall(StrictModel):
    """A call of the local shell."""

    type: Literal["local_shell_call"]
    id: str | None = None
    call_id: CallId
    action: ExecAction
    status: Status | None = None


class LocalShellCallOutput(StrictModel):
    """What the local shell gave back; it may name its call or, as in the protocol's first form, the item of its call by `id`."""

    type: Literal["local_shell_call_output"]
    id: str | None = None
    call_id: CallId
    output: LongText
    status: Status | None = None


class Operation(StrictModel):
    """A change of one file."""

    type: Literal["create_file", "update_file", "delete_file"]
    path: LongText
    diff: LongText | None = None


class ApplyPatchCallInput(StrictModel):
    """A change that the client was to make."""

    type: Literal["apply_patch_call"]
    id: str | None = None
    call_id: CallId
    operation: Operation
    status: Literal["in_progress", "completed"] | None = None
    caller: Caller | None = None
    created_by: str | None = None


class ApplyPatchCallOutput(StrictModel):
    """Whether the change was made."""

    type: Literal["apply_patch_call_output"]
    id: str | None = None
    call_id: CallId
    status: Literal["completed", "failed"]
    output: LongText | None = None
    caller: Caller | None = None
    created_by: str | None = None


class ToolSearchCall(StrictModel):
    """A search for tools that the client was to make, or that another server made."""

    type: Literal["tool_search_call"]
    id: str | None = None
    call_id: CallId | None = None
    arguments: Any
    execution: Literal["client", "server"] = "client"
    status: Status | None = None
    created_by: str | None = None


class ToolSearchOutput(StrictModel):
    """The tools that were found; they may be called from here on."""

    type: Literal["tool_search_output"]
    id: str | None = None
    call_id: CallId | None = None
    execution: Literal["client", "server"] = "client"
    tools: list[Any]
    status: Status | None = None
    created_by: str | None = None


class SafetyCheck(StrictModel):
    """What the client was to confirm. This server asks for nothing."""

    id: str
    code: str | None = None
    message: str | None = None


class ComputerCall(StrictModel):
    """A call of the client's computer, with one action or with several."""

    type: Literal["computer_call"]
    id: str | None = None
    call_id: CallId
    action: dict[str, Any] | None = None
    actions: Annotated[Array[dict[str, Any]], Field(min_length=1, max_length=1024)] | None = None
    pending_safety_checks: Array[SafetyCheck] = Field(default_factory=list)
    status: Status | None = None


class Screenshot(StrictModel):
    """The screen of the client's computer."""

    type: Literal["computer_screenshot"]
    image_url: Annotated[str, Field(max_length=IMAGE_URL_LIMIT)] | None = None
    file_id: str | None = None


class ComputerCallOutput(StrictModel):
    """What the computer shows now."""

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
# How their ids begin. Of outputs no prefix is known: clients make these ids themselves.
CLIENT_PREFIXES: Mapping[str, str] = {
    "shell_call": "sh",
    "local_shell_call": "lsh",
    "apply_patch_call": "apc",
    "tool_search_call": "tsc",
    "computer_call": "cu",
    **{kind: "" for kind in CLIENT_ITEMS if not kind.endswith("_call")},
}
