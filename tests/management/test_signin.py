"""`manage.py signin` and `manage.py doctor` with a wrong address."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command


@pytest.mark.parametrize("command", ["signin", "doctor"])
@pytest.mark.parametrize("url", ["example.com", "ftp://example.com", "https://", "https://example.com:x", "http://[::1"])
def test_a_wrong_address_is_refused(command: str, url: str) -> None:
    with pytest.raises(CommandError, match="must be like https://"):
        call_command(command, f"--url={url}")
