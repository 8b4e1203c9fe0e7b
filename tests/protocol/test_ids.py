"""The prefixes of ids."""

from __future__ import annotations

import pytest

from responses_app.protocol.ids import prefix


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("response", "resp_"), ("conversation", "conv_"), ("request", "req_"), ("call", "call_"), ("message", "msg_")],
)
def test_ids_begin_with_the_prefix_of_their_kind(kind: str, expected: str) -> None:
    assert prefix(kind) == expected


def test_a_kind_without_ids_has_no_prefix() -> None:
    with pytest.raises(KeyError):
        prefix("chatcmpl-tool")
