"""Misspelt environment variables and values: names that no program of the server reads, unknown types of tools, short keys."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from project.env import MIN_TOKEN_LENGTH, READ, envlist

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
# Types that RESPONSES_INACTIVE_TOOLS can name, beside those of older versions of the API (web_search_preview).
INACTIVE_TYPES = ("code_interpreter", "file_search", "image_generation", "mcp", "programmatic_tool_calling", "web_search")


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
    """Yield a sentence for each value that the server can use but that the operator may not want."""
    for kind in envlist("RESPONSES_INACTIVE_TOOLS"):
        if not kind.startswith(INACTIVE_TYPES):
            nearest = get_close_matches(kind, INACTIVE_TYPES, 1, NEAREST)
            meant = f"did you mean {nearest[0]}?" if nearest else f"the types are {', '.join(INACTIVE_TYPES)}"
            yield f"RESPONSES_INACTIVE_TOOLS names {kind!r}, which is no type of a server tool: {meant}"
    length = len(os.environ.get("RESPONSES_API_KEY", ""))
    if 0 < length < MIN_TOKEN_LENGTH:
        yield (
            f"RESPONSES_API_KEY has {length} characters and can be guessed: set a key of at least {MIN_TOKEN_LENGTH} characters, "
            "or unset the variable, and the server makes a key"
        )
