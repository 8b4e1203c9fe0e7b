"""The item types of Open Responses, and events in that profile."""

from __future__ import annotations

from typing import Final

import orjson

from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.events import Event
from responses_app.wire import profiles

ITEMS: Final = {
    "message": "role content",
    "reasoning": "summary content",
    "function_call": "call_id name arguments",
    "compaction": "encrypted_content",
}


def opened(events: list[Event]) -> list[Event]:
    """The same stream below /openresponses/v1."""
    frames = [
        profiles.frame_to_profile(EventFrame(event["sequence_number"], event["type"], orjson.dumps(event))) for event in events
    ]
    sent = [orjson.loads(frame.data) for frame in frames]
    assert [frame.type for frame in frames] == [event["type"] for event in sent]
    return sent
