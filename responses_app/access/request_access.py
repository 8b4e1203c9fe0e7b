"""Check of a request against the rights and limits of the key, before anything runs."""

from __future__ import annotations

from responses_app.access import model_access, run_limits, tool_access
from responses_app.models import ApiKey
from responses_app.runs.create_request import CreateRequest


def authorize(key: ApiKey, request: CreateRequest) -> CreateRequest:
    """Return the request with the limits of its model and its key. Raises InvalidRequest, Forbidden."""
    model_access.check_model(key, request.model)
    tool_access.check_tools(key, request.tools)
    return run_limits.with_limits(key, request)
