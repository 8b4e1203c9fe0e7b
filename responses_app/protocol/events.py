"""Event builders: plain values in, a wire event without sequence number out.

Keys have a fixed order: `type` first (`with_number` puts `sequence_number` second) and bulky payloads last, so that the bytes of a
`response`, an `item` or a `part` can be cut out of an encoded event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]
"""One event in its wire form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentStreamSpec:
    """Description of the argument stream of a call: event types, key of the whole text, and default for an empty text."""

    delta: str
    done: str
    key: str
    empty: str = ""


def with_number(event: Event, number: int) -> Event:
    """Return the event with `number` as `sequence_number`, the second key."""
    return {"type": event["type"], "sequence_number": number, **event}


def lifecycle(stage: str, response: Mapping[str, Any]) -> Event:
    """Return `response.<stage>` with the whole Response; stages are created, queued, in_progress and the terminal statuses."""
    return {"type": f"response.{stage}", "response": response}


def error(code: str | None, message: str, kind: str, param: str | None) -> Event:
    """Return an error event: flat keys for the event models of SDKs, and a nested error for other clients."""
    return {
        "type": "error",
        "code": code,
        "message": message,
        "param": param,
        "error": {"type": kind, "code": code, "message": message, "param": param},
    }


def item_added(output_index: int, item: Mapping[str, Any]) -> Event:
    """Return the event that opens `item`."""
    return {"type": "response.output_item.added", "output_index": output_index, "item": item}


def item_done(output_index: int, item: Mapping[str, Any]) -> Event:
    """Return the event that closes `item`."""
    return {"type": "response.output_item.done", "output_index": output_index, "item": item}


def arguments_delta(stream: ArgumentStreamSpec, item_id: str, output_index: int, delta: str) -> Event:
    """Return the event with more text of an argument stream."""
    return {"type": stream.delta, "item_id": item_id, "output_index": output_index, "delta": delta}


def arguments_done(stream: ArgumentStreamSpec, item_id: str, output_index: int, text: str) -> Event:
    """Return the event with the whole text of an argument stream."""
    return {"type": stream.done, "item_id": item_id, "output_index": output_index, stream.key: text}


def progress(item_type: str, stage: str, item_id: str, output_index: int) -> Event:
    """Return `response.<item_type>.<stage>`, the progress of a server tool."""
    return {"type": f"response.{item_type}.{stage}", "item_id": item_id, "output_index": output_index}
