"""Text of a delta event, cut out of its JSON without decoding: each token has such an event."""

from __future__ import annotations

from typing import Final

from responses_app.protocol.encoding import EventFrame

_DELTA: Final = b',"delta":'
_OUTPUT_TEXT: Final = "response.output_text.delta"
# How the event of an output text ends that has no log-probabilities.
_PLAIN_END: Final = b',"logprobs":[]}'


def delta_text(frame: EventFrame) -> bytes | None:
    """Return the JSON of the text of a delta event; None for an output text with log-probabilities."""
    data = frame.data
    start = data.index(_DELTA) + len(_DELTA)
    if frame.type != _OUTPUT_TEXT:
        return data[start:-1]
    return data[start : -len(_PLAIN_END)] if data.endswith(_PLAIN_END) else None
