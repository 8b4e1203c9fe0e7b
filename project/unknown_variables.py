"""Misspelt environment variables: names that begin with RESPONSES_ and that no program of the server reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from project.env import READ

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


def describe_unknown(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each unknown variable, with the known name of nearest spelling. The settings must be loaded."""
    known = [name for name in (*READ, *PROGRAM_VARIABLES) if name.startswith(PREFIX)]
    known += [f"{name}_FILE" for name in known]
    for name in sorted(set(environ) - set(known)):
        if name.startswith(PREFIX):
            nearest = get_close_matches(name.removeprefix(PREFIX), [text.removeprefix(PREFIX) for text in known], 1, NEAREST)
            meant = f": did you mean {PREFIX}{nearest[0]}?" if nearest else " (docs/settings.md lists the settings)"
            yield f"{name} is no setting of this server, and has no effect{meant}"
