"""Code interpreter call: code that the server runs in a container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from responses_app.protocol.events import ArgumentStreamSpec, Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import COMPLETED_INCOMPLETE_OR_FAILED, Arguments, Delta, Family, Item, Json
from responses_app.protocol.items.server_tools.tool_result import ToolResult
from responses_app.protocol.items.streamed_call import StreamedCall

RUNNING: Final = "interpreting"


@dataclass(slots=True)
class CodeCall(Delta):
    """Beginning of a code interpreter call; `Arguments` carry the code."""

    container_id: str


@dataclass(slots=True)
class CodeStarted(Delta):
    """The start of the complete code in the container."""


@dataclass(slots=True)
class CodeResult(ToolResult):
    """The outputs of the code."""

    outputs: Sequence[Json] | None = None
    failed: bool = False


class CodeInterpreterCall(StreamedCall):
    """An open code interpreter call: code, then `interpreting`, then the outputs."""

    __slots__ = ("running",)

    def __init__(self, family: Family, body: Item, index: int) -> None:
        super().__init__(family, body, index)
        self.running = False

    def mark_running(self, _delta: CodeStarted | None = None) -> list[Event]:
        """End the code and show that the code runs. Repeated calls do nothing."""
        if self.running:
            return []
        self.running = True
        return [*self.finish_arguments(), self.progress(RUNNING)]

    def finish(self, delta: CodeResult) -> list[Event]:
        """Close the call with the outputs. A failed call has no `completed` event."""
        outputs = None if delta.outputs is None else list(delta.outputs)
        if delta.failed:
            emitted, status = self.finish_arguments(), "failed"
        else:
            emitted, status = [*self.mark_running(), self.progress("completed")], "completed"
        return [*emitted, self.done({"code": self.arguments, "outputs": outputs, "status": status})]

    def replay(self, event: Json) -> None:
        """Apply a delta or the end of the code, or the start of the run."""
        if event["type"].endswith(f".{RUNNING}"):
            self.mark_running()
        else:
            super().replay(event)


def _initial(delta: CodeCall, _new_id: IdFactory) -> Item:
    return {"status": "in_progress", "container_id": delta.container_id, "code": "", "outputs": None}


CODE_INTERPRETER_CALL: Final = Family(
    type="code_interpreter_call",
    id_prefix="ci_",
    tool="code_interpreter",
    runs_on_server=True,
    item=CodeInterpreterCall,
    opened_by={CodeCall: ""},
    initial=_initial,
    steps={Arguments: CodeInterpreterCall.append, CodeStarted: CodeInterpreterCall.mark_running},
    results={CodeResult: CodeInterpreterCall.finish},
    argument_stream=ArgumentStreamSpec(
        delta="response.code_interpreter_call_code.delta",
        done="response.code_interpreter_call_code.done",
        key="code",
    ),
    progress=("in_progress", RUNNING, "completed"),
    running_status=RUNNING,
    final_statuses=COMPLETED_INCOMPLETE_OR_FAILED,
)
