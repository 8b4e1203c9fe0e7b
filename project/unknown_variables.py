"""Misspelt environment variables and values: names that no program of the server reads, unknown types of tools, short secrets."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from project.env import MIN_TOKEN_LENGTH, READ, check_token, envlist, read_variable
from responses_app.installation.data_dir import data_dir
from responses_app.installation.secret_key import MIN_LENGTH
from responses_app.tools.mcp.setting import parse_mcp_servers

PREFIX = "RESPONSES_"
# Variables of programs, beside those of the settings; RESPONSES_TEST_TEMPLATE is a variable of tests.support.suite.
PROGRAM_VARIABLES = (
    "RESPONSES_API_KEY",
    "RESPONSES_ENGINE_KEY",
    "RESPONSES_OUTER",
    "RESPONSES_OWNER",
    "RESPONSES_PARENT",
    "RESPONSES_PROG",
    "RESPONSES_TEST_TEMPLATE",
)
NEAREST = 0.7
# Types that RESPONSES_INACTIVE_TOOLS can name.
INACTIVE_TYPES = ("code_interpreter", "file_search", "image_generation", "mcp", "programmatic_tool_calling", "web_search")
# Versions of a type, as in web_search_preview, web_search_2025_08_26 and web_search_preview_2025_03_11.
VERSION = re.compile(r"(_preview)?(_\d{4}_\d{2}_\d{2})?$")


def describe_unknown(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each unknown variable, with the known name of nearest spelling. The settings must be loaded."""
    known = [name for name in (*READ, *PROGRAM_VARIABLES) if name.startswith(PREFIX)]
    known += [f"{name}_FILE" for name in known]
    for name in sorted(set(environ) - set(known)):
        if name.startswith(PREFIX):
            nearest = get_close_matches(name.removeprefix(PREFIX), [text.removeprefix(PREFIX) for text in known], 1, NEAREST)
            meant = f": did you mean {PREFIX}{nearest[0]}?" if nearest else " (docs/settings.md lists the settings)"
            yield f"{name} is no setting of this server, and has no effect{meant}"


def describe_doubtful_values() -> Iterator[str]:
    """Yield a sentence for each value that the server can use but that the operator may not want. Raises ImproperlyConfigured."""
    for kind in envlist("RESPONSES_INACTIVE_TOOLS"):
        if VERSION.sub("", kind) not in INACTIVE_TYPES:
            nearest = get_close_matches(kind, INACTIVE_TYPES, 1, NEAREST)
            meant = f"did you mean {nearest[0]}?" if nearest else f"the types are {', '.join(INACTIVE_TYPES)}"
            yield f"RESPONSES_INACTIVE_TOOLS names {kind!r}, which is no type of a server tool: {meant}"
    for network in envlist("RESPONSES_TRUSTED_PROXIES"):
        if network.endswith("/0"):
            yield (
                f"RESPONSES_TRUSTED_PROXIES: {network} has every address, so a client can claim any other in X-Forwarded-For, "
                "and no limit by address holds: name the proxies alone"
            )
    # Of a unit of systemd or a value in quotes: a folder with the name ~ would be made.
    if "~" in Path(os.environ.get("RESPONSES_DATA_DIR", "")).parts:
        yield f"RESPONSES_DATA_DIR: no shell has replaced the ~, so the data is in {data_dir()}: write the path in full"
    yield from _describe_secrets()
    yield from _describe_programs()


def _describe_programs() -> Iterator[str]:
    """Yield a sentence for each MCP server whose program is missing. No sentence has a value, as values may be secrets."""
    for label, server in parse_mcp_servers(read_variable("RESPONSES_MCP_SERVERS")).items():
        command, environ = server.get("command"), server.get("env", {})
        if command and shutil.which(command[0], path=environ.get("PATH")) is None:
            yield (
                f"RESPONSES_MCP_SERVERS: server {label!r}: the program of 'command' is missing, or this account may not run it, "
                "so its tools fail: install the program, or correct 'command'"
            )


def _describe_secrets() -> Iterator[str]:
    for number, key in enumerate(read_variable("SECRET_KEY_FALLBACKS").split(), 1):
        if len(key) < MIN_LENGTH:
            yield (
                f"Key {number} of SECRET_KEY_FALLBACKS has {len(key)} characters and can be guessed, and so can what it signs: "
                "remove it as soon as its API keys and sessions are replaced"
            )
        if "," in key:
            yield f"Key {number} of SECRET_KEY_FALLBACKS has a comma: white space separates the keys, and a comma is part of a key"
    length = len(read_variable("RESPONSES_SANDBOX_TOKEN"))
    if 0 < length < MIN_TOKEN_LENGTH:
        yield (
            f"RESPONSES_SANDBOX_TOKEN has {length} characters and can be guessed: set a token of at least {MIN_TOKEN_LENGTH} "
            "characters for the server and for the runner"
        )
    length = len(check_token("RESPONSES_API_KEY", read_variable("RESPONSES_API_KEY")))
    if 0 < length < MIN_TOKEN_LENGTH:
        name = "RESPONSES_API_KEY_FILE" if os.environ.get("RESPONSES_API_KEY_FILE") else "RESPONSES_API_KEY"
        yield (
            f"The key of {name} has {length} characters and can be guessed: set a key of at least {MIN_TOKEN_LENGTH} characters, "
            "or unset the variable, and the server makes a key"
        )
