"""Names of environment variables: every one that the code reads is known, and a misspelt one is described."""

from __future__ import annotations

import re

from django.conf import settings

from project.env import READ
from project.unknown_variables import PROGRAM_VARIABLES, describe_unknown
from responses_app.installation.data_dir import ROOT

FOLDERS = ("bin", "bench", "project", "responses_app", "tests")
# Names that the tests themselves misspell.
MISSPELT = {"RESPONSES_MAX_CONCURENT", "RESPONSES_MODLES", "RESPONSES_ZZZZZZ", "RESPONSES_SANDBOX_TOKEN_FIL"}


def test_unknown_names_are_described_with_the_nearest_spelling() -> None:
    environ = dict.fromkeys((*MISSPELT, *PROGRAM_VARIABLES, "RESPONSES_MODELS", "RESPONSES_SANDBOX_TOKEN_FILE", "PATH"), "x")
    assert list(describe_unknown(environ)) == [
        "RESPONSES_MAX_CONCURENT is no setting of this server, and has no effect: did you mean RESPONSES_MAX_CONCURRENT?",
        "RESPONSES_MODLES is no setting of this server, and has no effect: did you mean RESPONSES_MODELS?",
        "RESPONSES_SANDBOX_TOKEN_FIL is no setting of this server, and has no effect: did you mean RESPONSES_SANDBOX_TOKEN_FILE?",
        "RESPONSES_ZZZZZZ is no setting of this server, and has no effect (docs/settings.md lists the settings)",
    ]


def test_every_name_that_the_code_uses_is_known() -> None:
    """Names in quotes, and assignments of shell scripts. Names of Django's settings are no variables."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in ("", ".py") and path.is_file()]
    pattern = re.compile(r"\"(RESPONSES_[A-Z_]+)\"|\b(RESPONSES_[A-Z_]+)=")
    names = {match[1] or match[2] for path in paths for match in pattern.finditer(path.read_text(errors="replace"))}
    known = {*READ, *PROGRAM_VARIABLES, *MISSPELT, "RESPONSES_MODLES", *(f"{name}_FILE" for name in READ)}
    assert {name for name in names - known if not hasattr(settings, name)} == set()
