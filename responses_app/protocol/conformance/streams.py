"""Rules C2 to C4, C6 and C7 for the one text of a call, and I7 for the progress of tools that the server runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from responses_app.protocol.conformance.violation import Findings

# Item type -> (event name without `.delta` or `.done`, key of the whole text).
CHANNELS: Final = {
    "function_call": ("function_call_arguments", "arguments"),
    "mcp_call": ("mcp_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
    "code_interpreter_call": ("code_interpreter_call_code", "code"),
}

# Item type -> stage -> stages that may come next. The empty name is the beginning; a stage that leads nowhere is an end.
STAGES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "mcp_list_tools": {"": ("in_progress",), "in_progress": ("completed", "failed")},
    "mcp_call": {"": ("in_progress",), "in_progress": ("completed", "failed")},
    "code_interpreter_call": {
        "": ("in_progress",),
        "in_progress": ("interpreting",),
        "interpreting": ("completed",),
    },
    "web_search_call": {
        "": ("in_progress",),
        "in_progress": ("searching", "completed"),
        "searching": ("searching", "completed"),
    },
    "file_search_call": {"": ("in_progress",), "in_progress": ("searching", "completed"), "searching": ("completed",)},
    "image_generation_call": {
        "": ("in_progress",),
        "in_progress": ("generating", "partial_image", "completed"),
        "generating": ("partial_image", "completed"),
        "partial_image": ("partial_image", "completed"),
    },
}
# Stages that come only when the channel is done.
AFTER_CHANNEL: Final = frozenset({"interpreting", "completed", "failed"})


class ArgumentStream:
    """The text of a call: deltas, then one `.done`. `known` is False if it began before a resumed stream did."""

    def __init__(self, key: str, *, known: bool = True) -> None:
        self.key = key
        self.known = known
        self.said: list[str] = []
        self.whole: str | None = None

    def delta(self, event: Mapping[str, Any]) -> Findings:
        """C2, C3."""
        text = event.get("delta")
        if not isinstance(text, str):
            yield "C2", f"delta is {text!r} and no string"
            return
        if self.whole is not None:
            yield "C3", "a delta after the whole was told"
        self.said.append(text)

    def done(self, event: Mapping[str, Any]) -> Findings:
        """C3."""
        text = event.get(self.key)
        if self.whole is not None:
            yield "C3", f"{self.key} are done twice"
        elif not isinstance(text, str):
            yield "C3", f"{self.key} is {text!r}"
        elif self.known and text != "".join(self.said):
            yield "C3", f"{self.key} is not what the deltas said"
        self.whole = text if isinstance(text, str) else "".join(self.said)

    def close(self, item: Mapping[str, Any]) -> Findings:
        """C4, C6."""
        if self.whole is None:
            yield "C4", f"the item is done and its {self.key} never were"
        elif item.get(self.key) != self.whole:
            yield "C6", f"{self.key} of the item is not what was done"


class ToolProgress:
    """How far a hosted tool has come (I7)."""

    def __init__(self, kind: str, *, known: bool = True) -> None:
        self.table = STAGES[kind]
        self.at = "" if known else None

    def on_progress(self, stage: str, channel: ArgumentStream | None) -> Findings:
        """One status event."""
        if self.at is not None and stage not in self.table.get(self.at, ()):
            yield "I7", f"{stage} after {self.at or 'nothing'}"
        if channel is not None and channel.whole is None and channel.known and stage in AFTER_CHANNEL:
            yield "I7", f"{stage} before the {channel.key} was done"
        self.at = stage

    def close(self, item: Mapping[str, Any]) -> Findings:
        """The tool has come to its end, unless the item says that it failed or was cut."""
        if self.at == "failed" and item.get("status") == "completed":
            yield "I7", "the tool failed and its item is completed"
        if self.at is None or item.get("status") in ("failed", "incomplete"):
            return
        if self.at in self.table:
            yield "I7", f"the item is done and its tool is at {self.at or 'nothing'}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def is_json(text: object) -> bool:
    """Whether a client in any language could parse this."""
    try:
        json.loads(text, parse_constant=_refuse)  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        return False
    return True


class Commands:
    """The commands of a shell call, one after the other: each a text of its own with an index in place of an id (C1 to C4, C6)."""

    def __init__(self, *, known: bool = True) -> None:
        self.known = known
        self.told: list[ArgumentStream] = []

    def on_progress(self, act: str, event: Mapping[str, Any]) -> Findings:
        """`added`, `delta` or `done`."""
        index = event.get("command_index")
        if act == "added":
            yield from self._added(index, event)
            return
        if not self.told and not self.known:
            # It opened before the resume.
            self.told.append(ArgumentStream("command", known=False))
        elif not self.told or (self.known and index != len(self.told) - 1):
            yield "C2", f"no command is open at {index!r}"
            return
        yield from self.told[-1].delta(event) if act == "delta" else self.told[-1].done(event)

    def _added(self, index: object, event: Mapping[str, Any]) -> Findings:
        if self.known and index != len(self.told):
            yield "C1", f"command_index is {index!r}, not {len(self.told)}"
        if self.told and self.told[-1].whole is None:
            yield "C1", "a command opens and the one before it is not done"
        if event.get("command") != "":
            yield "C1", f"the command opens with {event.get('command')!r}"
        self.told.append(ArgumentStream("command"))

    def close(self, item: Mapping[str, Any]) -> Findings:
        """The item has the commands that were told; one that was told as a whole only has none here."""
        if any(one.whole is None for one in self.told):
            yield "C4", "the item is done and a command of it never was"
        action = item.get("action")
        commands = action.get("commands") if isinstance(action, Mapping) else None
        if self.told and commands != [one.whole for one in self.told]:
            yield "C6", "the commands of the item are not those that were done"
