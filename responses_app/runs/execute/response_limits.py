"""Limits of a response: output tokens, running time and context, with the name of the limit that cuts the response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from responses_app.runs.create_request import CreateRequest


class LimitName(StrEnum):
    """Name of a limit in `incomplete_details.limit`."""

    REQUEST = "request"
    KEY_DEFAULT = "key_default"
    KEY_MAXIMUM = "key_maximum"
    MODEL_DEFAULT = "model_default"
    MODEL_MAXIMUM = "model_maximum"
    CONTEXT_WINDOW = "context_window"


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """Limits of a response, each with a name. An empty `output_limit` is the limit of the request."""

    max_output_tokens: int | None = None
    output_limit: str = ""
    max_run_seconds: int | None = None
    run_limit: str = ""

    @classmethod
    def from_request(cls, request: CreateRequest) -> ResponseLimits:
        """Return the limits of the response to `request`."""
        return cls(request.max_output_tokens, request.output_limit, request.max_run_seconds, request.run_limit)

    def at_output(self, output: int, round_limit: int, context: int, context_window: int) -> Mapping[str, Any]:
        """Return name and value of the limit that has ended the output after `output` tokens.

        The last round could generate `round_limit` tokens, and `context` is the length of its prompt and its output.
        """
        if self.max_output_tokens is not None and output >= self.max_output_tokens:
            return _details(self.output_limit or LimitName.REQUEST, self.max_output_tokens)
        if self.max_output_tokens is not None or context >= context_window:
            return _details(LimitName.CONTEXT_WINDOW, context_window)
        # The `max_new_tokens` of the model, which hold for each round.
        return _details(LimitName.MODEL_DEFAULT, round_limit)

    def at_time(self) -> Mapping[str, Any]:
        """Return name and value of the limit of the running time; nothing for a request of an earlier version, which has no name."""
        return _details(self.run_limit, self.max_run_seconds) if self.run_limit else {}


NO_LIMITS = ResponseLimits()


def _details(name: str, value: int | None) -> Mapping[str, Any]:
    return {"limit": str(name), "value": value}
