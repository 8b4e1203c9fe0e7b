"""`manage.py signin` with a wrong address."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command


@pytest.mark.parametrize("url", ["verbatim.example.com", "ftp://verbatim.example.com"])
def test_an_address_without_http_is_refused(url: str) -> None:
    with pytest.raises(CommandError, match="must be like https://"):
        call_command("signin", f"--url={url}")
