"""The judge of event streams, ours or anybody's: `judge`, `judge_sse`, `Check`, and the command of this package."""

from __future__ import annotations

from responses_app.grammar.check.judge import Check, Profile, judge, judge_sse
from responses_app.grammar.check.violation import Violation

__all__ = ["Check", "Profile", "Violation", "judge", "judge_sse"]
