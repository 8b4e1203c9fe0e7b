"""Calls of tools that the request does not offer."""

from __future__ import annotations

from responses_app.protocol.deltas import Call, OutputProblem
from responses_app.runs.prepare.output_chain import UnknownToolFilter
from tests.support.dialects.call_events import ScriptedParser


def test_call_of_unknown_tool_is_reported_before_the_call() -> None:
    parser = UnknownToolFilter(ScriptedParser([Call("clock"), Call("dance")]), {"clock"})
    assert parser.finish() == [Call("clock"), OutputProblem("unknown_tool", item="next"), Call("dance")]
