"""Reasons why a call of a server tool was not made or has no result. The model reads these texts.

The module imports nothing of Django, so that programs without Django can compare the texts.
"""

from __future__ import annotations

from typing import Final

CUT_OFF: Final = "This call was not made: the server that generated the call has gone before the arguments were complete."
UNKNOWN_OUTCOME: Final = "The server that ran this call has gone, and the outcome is unknown."
