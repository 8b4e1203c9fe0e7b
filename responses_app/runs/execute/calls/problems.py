"""Reasons why a call of a server tool was not made or has no result. The model reads these texts."""

from __future__ import annotations

from typing import Final

CALL_LIMIT_REACHED: Final = (
    "This call was not made: the limit of tool calls for this response is reached. Answer without more calls."
)
CUT_OFF: Final = "This call was not made: the server that generated the call has gone before the arguments were complete."
UNKNOWN_OUTCOME: Final = "The server that ran this call has gone, and the outcome is unknown."
