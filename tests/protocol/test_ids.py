"""The prefixes of ids."""

from __future__ import annotations

import pytest

from responses_app.protocol.ids import PREFIXES
from responses_app.protocol.items.registry import FAMILIES


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [("response", "resp_"), ("conversation", "conv_"), ("request", "req_"), ("call", "call_"), ("file", "file-")],
)
def test_objects_have_the_prefixes_of_the_api(kind: str, prefix: str) -> None:
    assert PREFIXES[kind] == prefix


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        ("message", "msg_"),
        ("function_call_output", "fco_"),
        ("mcp_approval_request", "mcpr_"),
        ("mcp_approval_response", "mcpr_"),
        ("image_generation_call", "ig_"),
        ("program_output", "po_"),
    ],
)
def test_items_and_their_answers_have_the_prefix_of_their_family(kind: str, prefix: str) -> None:
    assert FAMILIES.id_prefixes[kind] == prefix
