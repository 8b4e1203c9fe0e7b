"""Schemas of input items and the registry of item families name the same types."""

from __future__ import annotations

from typing import Final

from responses_app.protocol.items.registry import FAMILIES
from responses_app.schemas.items import MODELS
from responses_app.schemas.parsing.items import ID_PREFIXES
from responses_app.schemas.server_items import SERVER_ITEMS

# Input types that are no items: a reference stands for a stored item, a trigger is a request.
NO_ITEMS: Final = {"item_reference", "compaction_trigger"}


def test_every_item_type_of_the_schemas_is_in_the_registry() -> None:
    assert {*MODELS} - NO_ITEMS == {*FAMILIES.id_prefixes}


def test_server_items_have_a_prefix_for_ids_of_this_server_and_accept_any_id() -> None:
    assert all(FAMILIES.id_prefixes[kind] and ID_PREFIXES[kind] == "" for kind in SERVER_ITEMS)


def test_ids_of_requests_have_the_prefixes_of_the_families() -> None:
    required = {kind: prefix for kind, prefix in ID_PREFIXES.items() if prefix}
    assert required == {
        "message": "msg",
        "reasoning": "rs",
        "function_call": "fc",
        "function_call_output": "fc",
        "custom_tool_call": "ctc",
        "custom_tool_call_output": "ctc",
        "shell_call": "sh",
        "local_shell_call": "lsh",
        "apply_patch_call": "apc",
        "tool_search_call": "tsc",
        "computer_call": "cu",
        "compaction": "cmp",
    }


def test_types_without_a_status_are_those_of_the_api() -> None:
    assert FAMILIES.without_status == {
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "program",
        "compaction",
        "additional_tools",
        "configuration_update",
    }
