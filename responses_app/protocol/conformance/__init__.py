"""Conformance checker of event streams, from this server or any other.

The checker has tables of its own on purpose: it shares no rule with the writer, so an error of the writer is no error of the checker.
"""

from __future__ import annotations

from responses_app.protocol.conformance.validator import Profile, StreamValidator, validate, validate_sse
from responses_app.protocol.conformance.violation import Violation

__all__ = ["Profile", "StreamValidator", "Violation", "validate", "validate_sse"]
