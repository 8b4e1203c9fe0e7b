"""Account of the runner."""

from __future__ import annotations

import pwd
from pathlib import Path

from responses_app.sandbox.launch import launcher


def test_installations_have_accounts_of_their_own_that_no_user_has() -> None:
    numbers = [launcher.account(Path(f"/srv/verbatim-{number}/sandbox")) for number in range(8)]
    assert len(set(numbers)) > 1
    assert launcher.account(Path("/srv/verbatim-0/sandbox")) == numbers[0]
    assert not set(numbers) & {entry.pw_uid for entry in pwd.getpwall()}
