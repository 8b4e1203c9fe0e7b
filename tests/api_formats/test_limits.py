"""Bounds of requests that hold before each part is validated."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.api_formats.chat_completions import request as chat_completions
from responses_app.api_formats.messages import request as messages
from responses_app.errors import InvalidRequest
from responses_app.models import ApiKey
from responses_app.validation.base import TOOLS_LIMIT


@pytest.mark.parametrize("parse", [chat_completions.parse_request, messages.parse_request])
def test_too_many_tools_are_counted_before_each_is_read(parse: Any) -> None:
    body = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}], "tools": [{}] * (TOOLS_LIMIT + 1)}
    with pytest.raises(InvalidRequest, match="too many tools") as error:
        parse(body, ApiKey(project="p"))
    assert (error.value.param, error.value.code) == ("tools", "array_above_max_length")
