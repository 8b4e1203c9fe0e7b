"""MCP servers of the operator: parsing of RESPONSES_MCP_SERVERS. No message contains a value, as values may be secrets."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, TypeGuard

from django.core.exceptions import ImproperlyConfigured

from responses_app.installation.addresses import is_host
from responses_app.installation.data_dir import EXAMPLES
from responses_app.installation.shared_settings import DEMO_LABEL
from responses_app.tools.http_headers import header_problem, size_problem, value_problem
from responses_app.utils.json_setting import has_white_space, load_json, split_url, unknown_key_problem

NAME = "RESPONSES_MCP_SERVERS"
LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
KEYS = ("url", "authorization", "headers", "command", "env", "connector_id", "description")
DEMO_PROGRAM = EXAMPLES / "mcp_server.py"
TEXTS = ("url", "authorization", "connector_id", "description")


def parse_mcp_servers(value: str) -> dict[str, dict[str, Any]]:
    """Parse JSON, or the JSON file that `value` names, to servers by label. Raises ImproperlyConfigured."""
    value = value.strip()
    if not value:
        return {}
    servers = load_json(NAME, value, "a JSON object or the path of a JSON file")
    if not isinstance(servers, dict):
        raise ImproperlyConfigured(f"{NAME} must be a JSON object of servers by label")
    for label, server in servers.items():
        problem = _label_problem(label) or _server_problem(server)
        if problem:
            raise ImproperlyConfigured(f"{NAME}: server {label!r}: {problem}")
    _check_connectors(servers)
    return servers


def with_demo_server(servers: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return `servers` and the example server. Raises ImproperlyConfigured if the label `demo` is in use."""
    if DEMO_LABEL in servers:
        raise ImproperlyConfigured(f"RESPONSES_DEMO_TOOLS needs the label {DEMO_LABEL!r}, which {NAME} has already")
    return {**servers, DEMO_LABEL: {"command": [sys.executable, str(DEMO_PROGRAM)]}}


def parse_private_hosts(name: str, values: list[str]) -> frozenset[str]:
    """Parse the host names of the setting `name`, each with or without a port. Raises ImproperlyConfigured."""
    for value in values:
        if not is_host(value, with_port=True):
            raise ImproperlyConfigured(f"{name} must be host names or host:port, each in full, not {value!r}")
    return frozenset(value.lower() for value in values)


def _label_problem(label: str) -> str | None:
    if LABEL.fullmatch(label):
        return None
    return "a label begins with a letter and has at most 64 letters, digits, underscores and hyphens"


def _server_problem(server: object) -> str | None:
    if not isinstance(server, dict):
        return "must be an object"
    unknown = unknown_key_problem(server, KEYS)
    if unknown is None and ("url" in server) == ("command" in server):
        return "needs 'url' or 'command', and not both"
    return unknown or _texts_problem(server) or (_http_problem if "url" in server else _command_problem)(server)


def _texts_problem(server: Mapping[str, Any]) -> str | None:
    wrong = next((key for key in TEXTS if key in server and not (isinstance(server[key], str) and server[key])), None)
    return f"{wrong!r} must be a text" if wrong else None


def _http_problem(server: Mapping[str, Any]) -> str | None:
    if "env" in server:
        return "'env' is for servers with 'command'"
    parts = split_url(server["url"])
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return "'url' must be an http or https URL"
    if "@" in parts.netloc:
        return "'url' must have no user name and no password: use 'authorization'"
    if has_white_space(server["url"]):
        return "'url' must have no white space and no invisible characters (a blank is written as %20)"
    authorization = value_problem(server.get("authorization", ""))
    return f"'authorization': {authorization}" if authorization else _headers_problem(server.get("headers", {}))


def _headers_problem(headers: object) -> str | None:
    if not _is_text_mapping(headers):
        return "'headers' must be an object of texts"
    each = ((name, header_problem(name, value)) for name, value in headers.items())
    problem = next((f"'headers', {name!r}: {problem}" for name, problem in each if problem), None)
    size = size_problem(headers)
    return problem or (f"'headers': {size}" if size else None)


def _command_problem(server: Mapping[str, Any]) -> str | None:
    http_key = next((key for key in ("authorization", "headers") if key in server), None)
    if http_key:
        return f"{http_key!r} is for servers with 'url'"
    command = server["command"]
    if not isinstance(command, list) or not command or not all(isinstance(part, str) and part for part in command):
        return "'command' must be a list of texts: the program and each argument"
    return None if _is_text_mapping(server.get("env", {})) else "'env' must be an object of texts"


def _is_text_mapping(value: object) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _check_connectors(servers: Mapping[str, Mapping[str, Any]]) -> None:
    labels: dict[str, str] = {}
    for label, server in servers.items():
        connector = server.get("connector_id")
        if connector is not None and labels.setdefault(connector, label) != label:
            raise ImproperlyConfigured(f"{NAME}: server {label!r}: 'connector_id' is that of server {labels[connector]!r}")
