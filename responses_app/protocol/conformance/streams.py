"""Rules C2 to C4, C6 and C7 for the argument stream of a call, and I7 for the progress of server tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from responses_app.protocol.conformance.violation import Findings

# Stages that come only when the argument stream is done.
AFTER_ARGUMENTS: Final = frozenset({"interpreting", "completed", "failed"})


class ArgumentStream:
    """Text of a call: deltas, then a `.done`. `known` is False if the text began before a resumed stream."""

    def __init__(self, key: str, *, known: bool = True) -> None:
        self.key = key
        self.known = known
        self.texts: list[str] = []
        self.whole: str | None = None

    def delta(self, event: Mapping[str, Any]) -> Findings:
        """Check a delta: C2 and C3."""
        text = event.get("delta")
        if not isinstance(text, str):
            yield "C2", f"delta is {text!r} and no string"
            return
        if self.whole is not None:
            yield "C3", "a delta after the whole text"
        self.texts.append(text)

    def done(self, event: Mapping[str, Any]) -> Findings:
        """Check the whole text: C3."""
        text = event.get(self.key)
        if self.whole is not None:
            yield "C3", f"{self.key} are done twice"
        elif not isinstance(text, str):
            yield "C3", f"{self.key} is {text!r}"
        elif self.known and text != "".join(self.texts):
            yield "C3", f"{self.key} is not the text of the deltas"
        self.whole = text if isinstance(text, str) else "".join(self.texts)

    def close(self, item: Mapping[str, Any]) -> Findings:
        """Check the closed item: C4 and C6."""
        if self.whole is None:
            yield "C4", f"the item is done and its {self.key} never were"
        elif item.get(self.key) != self.whole:
            yield "C6", f"{self.key} of the item is not the text that was done"


class ToolProgress:
    """Stages of a server tool, rule I7. `stages` has the stages that may follow each stage."""

    def __init__(self, stages: Mapping[str, tuple[str, ...]], *, known: bool = True) -> None:
        self.stages = stages
        self.stage = "" if known else None

    def on_progress(self, stage: str, arguments: ArgumentStream | None) -> Findings:
        """Check a progress event."""
        if self.stage is not None and stage not in self.stages.get(self.stage, ()):
            yield "I7", f"{stage} after {self.stage or 'nothing'}"
        if arguments is not None and arguments.whole is None and arguments.known and stage in AFTER_ARGUMENTS:
            yield "I7", f"{stage} before the {arguments.key} was done"
        self.stage = stage

    def close(self, item: Mapping[str, Any]) -> Findings:
        """Check that the tool has ended, unless the item is failed or incomplete."""
        if self.stage == "failed" and item.get("status") == "completed":
            yield "I7", "the tool failed and its item is completed"
        if self.stage is None or item.get("status") in ("failed", "incomplete"):
            return
        if self.stage in self.stages:
            yield "I7", f"the item is done and its tool is at {self.stage or 'nothing'}"


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def is_json(text: object) -> bool:
    """Return whether a client in any language can parse `text`."""
    try:
        json.loads(text, parse_constant=_reject_constant)  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        return False
    return True


class Commands:
    """Consecutive commands of a shell call: each is a text with an index in place of an id. Rules C1 to C4 and C6."""

    def __init__(self, *, known: bool = True) -> None:
        self.known = known
        self.commands: list[ArgumentStream] = []

    def on_progress(self, act: str, event: Mapping[str, Any]) -> Findings:
        """Check an event of a command: `added`, `delta` or `done`."""
        index = event.get("command_index")
        if act == "added":
            yield from self._check_added(index, event)
            return
        if not self.commands and not self.known:
            # The command opened before the resume.
            self.commands.append(ArgumentStream("command", known=False))
        elif not self.commands or (self.known and index != len(self.commands) - 1):
            yield "C2", f"no command is open at {index!r}"
            return
        yield from self.commands[-1].delta(event) if act == "delta" else self.commands[-1].done(event)

    def _check_added(self, index: object, event: Mapping[str, Any]) -> Findings:
        if self.known and index != len(self.commands):
            yield "C1", f"command_index is {index!r}, not {len(self.commands)}"
        if self.commands and self.commands[-1].whole is None:
            yield "C1", "a command opens and the one before it is not done"
        if event.get("command") != "":
            yield "C1", f"the command opens with {event.get('command')!r}"
        self.commands.append(ArgumentStream("command"))

    def close(self, item: Mapping[str, Any]) -> Findings:
        """Check the closed item, unless the commands had no events."""
        if any(one.whole is None for one in self.commands):
            yield "C4", "the item is done and a command of it never was"
        action = item.get("action")
        commands = action.get("commands") if isinstance(action, Mapping) else None
        if self.commands and commands != [one.whole for one in self.commands]:
            yield "C6", "the commands of the item are not those that were done"
