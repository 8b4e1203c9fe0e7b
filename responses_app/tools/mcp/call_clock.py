"""Clock of an MCP call: the limit of silence, and the limit of the whole call."""

from __future__ import annotations

import time

from responses_app.tools.limits import ToolLimits


class CallClock:
    """Time that is left for a call within `limits`."""

    def __init__(self, limits: ToolLimits) -> None:
        self._limits, self._began_s = limits, time.monotonic()
        self._active_s = self._began_s

    def restart_idle(self) -> None:
        """Begin the idle time again."""
        self._active_s = time.monotonic()

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        now, limits = time.monotonic(), self._limits
        return max(min(self._active_s + limits.idle_timeout_s, self._began_s + limits.call_timeout_s) - now, 0.0)

    @property
    def message(self) -> str:
        """Message of the limit that was reached."""
        if time.monotonic() >= self._began_s + self._limits.call_timeout_s:
            return f"The call took longer than {self._limits.call_timeout_s:g} seconds and was stopped."
        return f"The MCP server was silent for {self._limits.idle_timeout_s:g} seconds, so the call was stopped."
