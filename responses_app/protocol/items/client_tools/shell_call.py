"""Shell call and local shell call: commands that the client runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from responses_app.protocol.events import Event
from responses_app.protocol.items.base import (
    ExtraEvents,
    Family,
    Item,
    Json,
    OpenItem,
    OutputItem,
)
from responses_app.protocol.items.client_tools.client_call import client_call_family

_COMMAND: Final = "response.shell_call_command."


class ShellCall(OpenItem):
    """Open shell call. The initial item has no commands: each command has separate events, without an `item_id`."""

    __slots__ = ("action",)

    def __init__(self, family: Family, body: Item, index: int) -> None:
        self.action = body["action"]
        super().__init__(family, {**body, "action": {**self.action, "commands": []}}, index)

    def open(self) -> list[Event]:
        """Return the events that open the item and show the commands in order."""
        commands = (event for number, text in enumerate(self.action["commands"]) for event in self._command(number, text))
        return [*super().open(), *commands]

    def close(self, status: str) -> list[Event]:
        """Close the item with the whole action."""
        return [self.done({"action": self.action, "status": status})]

    def _command(self, number: int, text: str) -> list[Event]:
        location = {"output_index": self.index, "command_index": number}
        delta = [{"type": f"{_COMMAND}delta", **location, "delta": text}] if text else []
        return [
            {"type": f"{_COMMAND}added", **location, "command": ""},
            *delta,
            {"type": f"{_COMMAND}done", **location, "command": text},
        ]


def _add_command(commands: list[str], event: Json) -> None:
    commands.append(event["command"])


def _append_to_command(commands: list[str], event: Json) -> None:
    commands[event["command_index"]] += event["delta"]


def _end_command(_commands: list[str], _event: Json) -> None:
    """Ignore the end: the deltas have the whole command."""


def _merge_commands(item: Item, commands: list[str]) -> Item:
    return {**item, "action": {**item["action"], "commands": commands}}


SHELL_CALL: Final = replace(
    client_call_family("shell_call", "sh_", "shell", OutputItem("shell_call_output", "sho_")),
    item=ShellCall,
    extra_events=ExtraEvents(
        collect={
            f"{_COMMAND}added": _add_command,
            f"{_COMMAND}delta": _append_to_command,
            f"{_COMMAND}done": _end_command,
        },
        merge=_merge_commands,
    ),
)
LOCAL_SHELL_CALL: Final = client_call_family(
    "local_shell_call", "lsh_", "local_shell", OutputItem("local_shell_call_output", "lsho_")
)
