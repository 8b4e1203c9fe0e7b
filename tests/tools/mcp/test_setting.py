"""RESPONSES_MCP_SERVERS and RESPONSES_MCP_PRIVATE_HOSTS: forms that are read, and errors that name the label and the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from responses_app.tools.mcp.setting import parse_mcp_servers, parse_private_hosts, with_demo_server

SERVERS = {
    "docs": {"url": "https://docs.example/mcp", "authorization": "token", "headers": {"X-Team": "a"}, "description": "Pages"},
    "files": {"command": ["/usr/bin/files", "--read"], "env": {"MODE": "read"}, "connector_id": "connector_files"},
}


@pytest.mark.parametrize("value", ["", "  "])
def test_empty_value_means_no_servers(value: str) -> None:
    assert parse_mcp_servers(value) == {}


def test_servers_are_read_from_json_text() -> None:
    assert parse_mcp_servers(json.dumps(SERVERS)) == SERVERS


def test_servers_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text(json.dumps(SERVERS))
    assert parse_mcp_servers(str(file)) == SERVERS


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("/nowhere/servers.json", "No such file"),
        ("{", "not valid JSON (line 1, column 2)"),
        ('{"a b": {"url": "https://a.example"}}', "server 'a b': a label begins with a letter"),
        ('{"1a": {"url": "https://a.example"}}', "server '1a': a label begins with a letter"),
    ],
)
def test_unreadable_value_is_refused(value: str, message: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        parse_mcp_servers(value)
    assert message in str(caught.value)
    assert "RESPONSES_MCP_SERVERS" in str(caught.value)


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("text", "must be an object"),
        ({}, "needs 'url' or 'command'"),
        ({"url": "https://a.example", "command": ["a"]}, "needs 'url' or 'command', and not both"),
        ({"url": "https://a.example", "token": "s3cret"}, "unknown key 'token'"),
        ({"url": "ftp://a.example"}, "'url' must be an http or https URL"),
        ({"url": "https://"}, "'url' must be an http or https URL"),
        ({"url": "https://a.example:port"}, "'url' must be an http or https URL"),
        ({"url": "https://me:s3cret@a.example"}, "'url' must have no user name"),
        ({"url": "https://a example/mcp"}, "'url' must have no white space"),
        ({"url": "https://a.example/mcp\n"}, "'url' must have no white space"),
        ({"url": "https://a.example/s3cret\x7f"}, "'url' must have no white space and no invisible characters"),
        ({"url": "https://a\u200b.example"}, "'url' must have no white space and no invisible characters"),
        ({"url": 5}, "'url' must be a text"),
        ({"url": "https://a.example", "authorization": ["s3cret"]}, "'authorization' must be a text"),
        ({"url": "https://a.example", "authorization": "s3cret\r\n"}, "'authorization': the value of a header"),
        ({"url": "https://a.example", "headers": {"A": 1}}, "'headers' must be an object of texts"),
        ({"url": "https://a.example", "headers": {"A b": "s3cret"}}, "'headers', 'A b': the name of a header"),
        ({"url": "https://a.example", "headers": {"authorization": "s3cret"}}, "use the field 'authorization'"),
        ({"url": "https://a.example", "env": {}}, "'env' is for servers with 'command'"),
        ({"command": "a b"}, "'command' must be a list of texts"),
        ({"command": []}, "'command' must be a list of texts"),
        ({"command": ["a"], "env": {"A": 1}}, "'env' must be an object of texts"),
        ({"command": ["a"], "authorization": "s3cret"}, "'authorization' is for servers with 'url'"),
    ],
)
def test_wrong_server_is_refused_with_label_and_key_and_without_secrets(server: Any, message: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        parse_mcp_servers(json.dumps({"notes": server}))
    assert "server 'notes'" in str(caught.value)
    assert message in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_servers_with_the_same_connector_are_refused() -> None:
    servers = {label: {"url": "https://a.example", "connector_id": "connector_x"} for label in ("a", "b")}
    with pytest.raises(ImproperlyConfigured, match="server 'b': 'connector_id' is that of server 'a'"):
        parse_mcp_servers(json.dumps(servers))


def test_private_hosts_are_hosts_with_or_without_a_port() -> None:
    assert parse_private_hosts(
        "RESPONSES_MCP_PRIVATE_HOSTS", ["Tools.local", "[::1]:8000", "10.0.0.7", "my_tool:80", "bücher.local"]
    ) == {
        "tools.local",
        "[::1]:8000",
        "10.0.0.7",
        "my_tool:80",
        "bücher.local",
    }


@pytest.mark.parametrize("value", ["http://a", "a/b", "me@a", "a:b", ":80", "*", "*.a", "{}", "a=b", "10.0.0.0/8", "-a"])
def test_private_host_of_another_form_is_refused(value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="RESPONSES_MCP_PRIVATE_HOSTS"):
        parse_private_hosts("RESPONSES_MCP_PRIVATE_HOSTS", [value])


def test_demo_server_is_added_to_the_servers_of_the_operator() -> None:
    servers = with_demo_server(SERVERS)
    assert list(servers) == ["docs", "files", "demo"]
    assert Path(servers["demo"]["command"][1]).is_file()


def test_label_of_the_demo_server_may_not_be_in_use() -> None:
    with pytest.raises(ImproperlyConfigured, match="the label 'demo'"):
        with_demo_server({"demo": SERVERS["docs"]})
