"""Wrong arguments of commands: each is refused with the name of the argument, before the database is used."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("createkey", ""), "argument name: must have 1 to 100 characters, not 0"),
        (("createkey", " "), "argument name: must have 1 to 100 characters, not 0"),
        (("createkey", "x" * 101), "argument name: must have 1 to 100 characters, not 101"),
        (("createkey", "x", "--project", ""), "argument --project: must have 1 to 100 characters, not 0"),
        (("createkey", "x", "--project", "x" * 101), "argument --project: must have 1 to 100 characters, not 101"),
        (("createkey", "x", "--model", ""), "argument --model: must have 1 to 200 characters, not 0"),
        (("createkey", "x", "--model", "x" * 201), "argument --model: must have 1 to 200 characters, not 201"),
        (("connect", "codex", "--project", "x" * 101), "argument --project: must have 1 to 100 characters, not 101"),
        (("prune", "--pause=-1"), "argument --pause: must be a number of seconds from 0 on, not '-1'"),
        (("prune", "--pause", "nan"), "argument --pause: must be a number of seconds from 0 on, not 'nan'"),
        (("prune", "--responses", "999999d"), "argument --responses: must be an age such as 7d of at most 36500d"),
        (("doctor", "--wait", "inf"), "argument --wait: must be a number of seconds from 0 on, not 'inf'"),
    ],
)
def test_wrong_argument_is_named(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command(*words)
