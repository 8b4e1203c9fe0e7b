"""The judge of event streams, ours or anybody's: `judge`, `judge_sse`, `Check`, and the command of this package."""

from __future__ import annotations

from responses_app.protocol.conformance.validator import Profile, StreamValidator, judge_sse, validate
from responses_app.protocol.conformance.violation import Violation

__all__ = ["Profile", "StreamValidator", "Violation", "judge_sse", "validate"]
