"""Text of files with and without a sandbox in the settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from django.test import override_settings

from responses_app.extraction.errors import ExtractorBusy
from responses_app.tools.file_text import extract_file_text
from tests.support.sandbox.runner import runner


@override_settings(RESPONSES_SANDBOX_URL="")
def test_file_is_read_with_limits_alone_where_no_sandbox_is_configured() -> None:
    assert asyncio.run(extract_file_text("tests", b"Oslo", "a.txt")).text == "Oslo"


def test_file_is_read_in_the_sandbox_of_the_settings_only(tmp_path: Path) -> None:
    with runner(tmp_path) as started, override_settings(RESPONSES_SANDBOX_URL=started.url):
        assert asyncio.run(extract_file_text("tests", b"Oslo", "a.txt")).text == "Oslo"
    with override_settings(RESPONSES_SANDBOX_URL=started.url), pytest.raises(ExtractorBusy, match="not available"):
        asyncio.run(extract_file_text("tests", b"Oslo", "a.txt"))
