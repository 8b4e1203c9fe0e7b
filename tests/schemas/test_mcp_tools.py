"""Tools of type `mcp`: the form that the response repeats, the credentials apart, and errors that name the field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from responses_app.errors import InvalidRequest
from responses_app.schemas.parsing import tools
from responses_app.schemas.tool_choice import parse_tool_choice
from responses_app.tools.mcp.request.parsing import secret_headers

DOCS: dict[str, Any] = {"type": "mcp", "server_label": "docs", "server_url": "https://docs.example/mcp?key=1"}
ECHO = {**DOCS, "server_description": None, "allowed_tools": None, "require_approval": "always"}
OPERATORS = {
    "wiki": {"url": "http://10.0.0.7/mcp"},
    "mail": {"url": "https://mail.example/mcp", "connector_id": "connector_gmail"},
    "files": {"command": ["/usr/bin/files"]},
}
SEARCH: dict[str, Any] = {"type": "tool_search", "execution": "client"}


@pytest.fixture(autouse=True)
def operator_settings() -> Iterator[None]:
    operators = override_settings(RESPONSES_MCP_SERVERS=OPERATORS, RESPONSES_MCP_PRIVATE_HOSTS=frozenset({"lan", "[::1]:8000"}))
    with operators:
        yield


@pytest.mark.parametrize(
    ("fields", "repeated"),
    [
        ({}, {}),
        ({"headers": None, "server_description": None, "connector_id": None, "allowed_tools": None}, {}),
        ({"authorization": "s3cret", "headers": {"X-Key": "s3cret"}}, {}),
        ({"server_description": "Pages"}, {"server_description": "Pages"}),
        ({"require_approval": "never"}, {"require_approval": "never"}),
        ({"require_approval": {"never": {"tool_names": ["a"]}}}, {"require_approval": {"never": {"tool_names": ["a"]}}}),
        ({"require_approval": {"always": {"read_only": False}}}, {"require_approval": {"always": {"read_only": False}}}),
        ({"allowed_tools": ["a", "b"]}, {"allowed_tools": ["a", "b"]}),
        ({"allowed_tools": {"read_only": True, "tool_names": None}}, {"allowed_tools": {"read_only": True}}),
        ({"allowed_callers": ["direct"]}, {}),
    ],
)
def test_tool_is_repeated_without_credentials(fields: dict[str, Any], repeated: dict[str, Any]) -> None:
    assert tools.read([{**DOCS, **fields}]) == [{**ECHO, **repeated}]


def test_deferred_tool_needs_a_tool_search() -> None:
    deferred = {**DOCS, "defer_loading": True}
    assert tools.read([deferred, SEARCH])[0] == {**ECHO, "defer_loading": True}
    with pytest.raises(InvalidRequest) as caught:
        tools.read([deferred])
    assert caught.value.param == "tools[0].defer_loading"


@pytest.mark.parametrize(
    "url",
    [
        "http://lan/mcp",
        "http://lan:9000/mcp",
        "http://LAN/mcp",
        "http://[::1]:8000/sse",
        "https://lan/mcp",
        "https://a.example:8443",
    ],
)
def test_url_of_a_private_host_may_be_http(url: str) -> None:
    assert tools.read([{**DOCS, "server_url": url}])[0]["server_url"] == url


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"type": "mcp", "server_label": "wiki"}, {}),
        ({"type": "mcp", "server_label": "my_mail", "connector_id": "connector_gmail"}, {"connector_id": "connector_gmail"}),
    ],
)
def test_operators_server_is_named_by_label_or_connector(tool: dict[str, Any], expected: dict[str, Any]) -> None:
    (parsed,) = tools.read([tool])
    assert {key: parsed[key] for key in ("server_url", "connector_id") if key in parsed} == expected


@pytest.mark.parametrize(
    ("fields", "code", "param", "text"),
    [
        ({"server_label": None}, "missing_required_parameter", "server_label", "Missing"),
        ({"server_label": "1a"}, "invalid_value", "server_label", "pattern"),
        ({"server_label": "a b"}, "invalid_value", "server_label", "pattern"),
        ({"server_label": "a\n"}, "invalid_value", "server_label", "pattern"),
        ({"server_label": "a" * 65}, "string_above_max_length", "server_label", "64"),
        ({"server_url": None}, "missing_required_parameter", "server_url", "RESPONSES_MCP_SERVERS"),
        ({"connector_id": "connector_gmail"}, "mutually_exclusive_parameters", "", "connector_id"),
        ({"server_url": None, "connector_id": "connector_x"}, "invalid_value", "connector_id", "RESPONSES_MCP_SERVERS"),
        ({"server_url": None, "tunnel_id": "t"}, "invalid_value", "tunnel_id", "RESPONSES_MCP_SERVERS"),
        ({"server_url": 5}, "invalid_type", "server_url", "a string"),
        ({"server_url": "https://a.example/" + "a" * 2048}, "string_above_max_length", "server_url", "2048"),
        ({"server_url": "http://a.example"}, "invalid_value", "server_url", "RESPONSES_MCP_PRIVATE_HOSTS"),
        ({"server_url": "http://[::1]:8001"}, "invalid_value", "server_url", "RESPONSES_MCP_PRIVATE_HOSTS"),
        ({"server_url": "ftp://a.example"}, "invalid_value", "server_url", "an https URL"),
        ({"server_url": "//a.example"}, "invalid_value", "server_url", "an https URL"),
        ({"server_url": "https:///mcp"}, "invalid_value", "server_url", "an https URL"),
        ({"server_url": f"https://{'a' * 64}.example"}, "invalid_value", "server_url", "an https URL"),
        ({"server_url": "https://a.example:x"}, "invalid_value", "server_url", "an https URL"),
        ({"server_url": "https://a.exa\tmple"}, "invalid_value", "server_url", "an https URL"),
        ({"server_url": "https://a.example/ b"}, "invalid_value", "server_url", "an https URL"),
        ({"server_url": "https://[::1"}, "invalid_value", "server_url", "an https URL"),
        ({"server_url": "https://me:s3cret@a.example"}, "invalid_value", "server_url", "use 'authorization'"),
        ({"authorization": ""}, "string_below_min_length", "authorization", "1"),
        ({"authorization": "s3cret\r\nX: 1"}, "invalid_value", "authorization", "visible ASCII"),
        ({"authorization": ["s3cret"]}, "invalid_type", "authorization", "a string"),
        ({"headers": ["s3cret"]}, "invalid_type", "headers", "an object"),
        ({"headers": {"X-Key": 1}}, "invalid_type", "headers.X-Key", "a string"),
        ({"headers": {"Authorization": "s3cret"}}, "invalid_value", "headers.Authorization", "'authorization'"),
        ({"headers": {"AUTHORIZATION": "s3cret"}}, "invalid_value", "headers.AUTHORIZATION", "'authorization'"),
        ({"headers": {"X Key": "s3cret"}}, "invalid_value", "headers.X Key", "the name of a header"),
        ({"headers": {"": "s3cret"}}, "invalid_value", 'headers[""]', "the name of a header"),
        ({"headers": {"X-Key": "s3cret\r\nHost: b"}}, "invalid_value", "headers.X-Key", "the value of a header"),
        ({"headers": {"X-Key": "s3cret "}}, "invalid_value", "headers.X-Key", "the value of a header"),
        ({"headers": {"host": "s3cret"}}, "invalid_value", "headers.host", "sets this header itself"),
        ({"headers": {"Mcp-Session-Id": "s3cret"}}, "invalid_value", "headers.Mcp-Session-Id", "sets this header itself"),
        (
            {"headers": {"Transfer-Encoding": "chunked"}},
            "invalid_value",
            "headers.Transfer-Encoding",
            "sets this header itself",
        ),
        ({"headers": {f"X-{n}": "s3cret" for n in range(33)}}, "invalid_value", "headers", "at most 32"),
        ({"headers": {"X-Key": "s3cret" * 1500}}, "invalid_value", "headers", "8192 bytes"),
        ({"headers": {"X-Key": "s3cret", "x-key": "s3cret"}}, "invalid_value", "headers", "the same name"),
        ({"allowed_tools": "a"}, "invalid_type", "allowed_tools", "an array or an object"),
        ({"allowed_tools": [1]}, "invalid_type", "allowed_tools[0]", "a string"),
        ({"allowed_tools": {"names": ["a"]}}, "unknown_parameter", "allowed_tools.names", "Unknown"),
        ({"allowed_tools": {"read_only": "yes"}}, "invalid_type", "allowed_tools.read_only", "a boolean"),
        ({"require_approval": "sometimes"}, "invalid_value", "require_approval", "'always', 'never'"),
        ({"require_approval": True}, "invalid_type", "require_approval", "a string or an object"),
        ({"require_approval": {"never": ["a"]}}, "invalid_type", "require_approval.never", "an object"),
        ({"require_approval": {"ask": {}}}, "unknown_parameter", "require_approval.ask", "Unknown"),
        ({"allowed_callers": ["programmatic"]}, "invalid_value", "allowed_callers[0]", "'direct'"),
        ({"server_token": "s3cret"}, "unknown_parameter", "server_token", "Unknown"),
    ],
)
def test_wrong_field_is_refused_by_path_and_without_secrets(fields: dict[str, Any], code: str, param: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        tools.read([{**DOCS, **fields}])
    error = caught.value
    assert (error.code, error.param) == (code, f"tools[0].{param}" if param else "tools[0]")
    assert text in error.message
    assert "s3cret" not in error.message


@pytest.mark.parametrize(
    ("others", "param", "text"),
    [
        ([DOCS], "tools[1].server_label", "used twice"),
        ([{"type": "function", "name": "docs__read"}], "tools[1].name", "begin with 'docs__'"),
        (
            [{"type": "namespace", "name": "docs", "tools": [{"type": "function", "name": "read"}]}],
            "tools[1].name",
            "begin with",
        ),
        ([{"type": "namespace", "name": "crm", "tools": [DOCS]}], "tools[1].tools[0].type", "'function', 'custom'"),
        ([{**DOCS, "server_label": f"s{n}"} for n in range(32)], "tools", "at most 32"),
        ([{"type": "mcp", "server_label": "files", "authorization": "s3cret"}], "tools[1].authorization", "no credentials"),
        ([{"type": "mcp", "server_label": "files", "headers": {"A": "s3cret"}}], "tools[1].headers", "no credentials"),
    ],
)
def test_wrong_tool_beside_another_is_refused(others: list[dict[str, Any]], param: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        tools.read([DOCS, *others])
    assert caught.value.param == param
    assert text in caught.value.message


def test_item_with_an_mcp_tool_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        tools.read([DOCS], ("input", 0, "tools"), in_item=True)
    assert caught.value.param == "input[0].tools[0].type"


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({}, None),
        ({"headers": {}}, None),
        ({"headers": {"X-Key": "a"}}, {"X-Key": "a"}),
        ({"authorization": "a"}, {"Authorization": "Bearer a"}),
        ({"authorization": "Bearer a"}, {"Authorization": "Bearer a"}),
        ({"authorization": "a", "headers": {"X-Key": "b"}}, {"X-Key": "b", "Authorization": "Bearer a"}),
    ],
)
def test_secret_headers_are_those_of_the_label(fields: dict[str, Any], headers: dict[str, str] | None) -> None:
    expected = {"docs": headers} if headers else {}
    assert secret_headers([{"type": "function", "name": "f"}, {**DOCS, **fields}]) == expected


@override_settings(RESPONSES_INACTIVE_TOOLS=frozenset({"mcp"}))
def test_inactive_tool_is_repeated_as_it_came_and_has_no_secrets() -> None:
    raw = [{"type": "mcp", "server_url": "any", "authorization": "s3cret"}]
    assert tools.read(raw) == [{"type": "mcp", "server_url": "any"}]
    assert tools.inactive_types(tools.read(raw)) == ["mcp"]
    assert secret_headers(raw) == {}


def test_active_tool_is_not_reported_as_inactive() -> None:
    assert tools.inactive_types(tools.read([DOCS])) == []


SERVER = {"type": "mcp", "server_label": "docs"}


@pytest.mark.parametrize(
    "choice", [SERVER, {**SERVER, "name": "read"}, {"type": "allowed_tools", "mode": "auto", "tools": [SERVER]}]
)
def test_tool_choice_names_a_server_or_a_tool(choice: dict[str, Any]) -> None:
    assert parse_tool_choice(choice, tools.read([{**DOCS, "allowed_tools": ["read"]}])) == choice


def test_null_name_of_a_choice_means_the_server() -> None:
    assert parse_tool_choice({**SERVER, "name": None}, tools.read([DOCS])) == SERVER


@pytest.mark.parametrize(
    ("choice", "param", "text"),
    [
        ({**SERVER, "server_label": "crm"}, "tool_choice", "'crm' not found in 'tools'"),
        ({**SERVER, "name": "erase"}, "tool_choice", "'docs.erase' not found in 'tools'"),
        ({"type": "mcp"}, "tool_choice.server_label", "Missing"),
        ({**SERVER, "tool": "a"}, "tool_choice.tool", "Unknown"),
        ({"type": "allowed_tools", "tools": [{"type": "mcp"}]}, "tool_choice.tools[0].server_label", "Missing"),
        ({"type": "allowed_tools", "tools": [{**SERVER, "server_label": "crm"}]}, "tool_choice", "'crm' not found"),
    ],
)
def test_choice_of_an_absent_tool_is_refused(choice: dict[str, Any], param: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_tool_choice(choice, tools.read([{**DOCS, "allowed_tools": {"tool_names": ["read"]}}]))
    assert caught.value.param == param
    assert text in caught.value.message
