"""The tables of the docs say what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from django.conf import settings
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from project.env import READ
from responses_app.api_formats.chat_completions import schema as chat_completions
from responses_app.api_formats.chat_completions.schema import ChatCompletionRequest
from responses_app.api_formats.messages import schema as messages
from responses_app.api_formats.messages.schema import MessagesRequest
from responses_app.schemas.create_response import REFUSED, CreateResponse
from tests.support.api_formats.anthropic_types import request_fields
from tests.support.doc_tables import table_rows

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
FIELDS = table_rows("api/fields.md", "# Fields of a create request")


def test_table_of_settings_has_every_setting() -> None:
    assert settings.configured
    table = table_rows("settings.md", "# Settings")
    assert set(table) == set(READ)


@pytest.mark.parametrize("name", sorted(READ))
def test_setting_is_documented_with_its_default(name: str) -> None:
    shown, default = table_rows("settings.md", "# Settings")[name][0], READ[name].default
    if shown.startswith("`"):
        assert shown == f"`{default}`"
    else:
        assert default == ""


def test_every_request_field_of_the_code_and_of_the_openai_package_is_in_the_table() -> None:
    ours = set(CreateResponse.model_fields) | set(REFUSED)
    assert set(FIELDS) == ours
    missing = set(ResponseCreateParamsBase.__annotations__) - ours
    assert not missing, f"the openai package has fields that were never decided on: {missing}"


def test_every_field_of_chat_completions_is_in_its_table() -> None:
    ours = set(ChatCompletionRequest.model_fields) | set(chat_completions.REFUSED)
    assert set(table_rows("api/chat-completions.md", "## Fields")) == ours
    missing = set(CompletionCreateParamsBase.__annotations__) - ours
    assert not missing, f"the openai package has fields that were never decided on: {missing}"


def test_every_field_of_messages_is_in_its_table() -> None:
    ours = set(MessagesRequest.model_fields) | set(messages.REFUSED)
    assert set(table_rows("api/messages.md", "## Fields")) == ours
    missing = request_fields() - ours
    assert not missing, f"the anthropic package has fields that were never decided on: {missing}"


def test_readme_is_short_and_counts_the_request_fields() -> None:
    assert len(README.splitlines()) <= 120
    count = re.search(r"Each of the (\d+) \[request fields\]", README)
    assert count is not None
    assert int(count[1]) == len(FIELDS)


def test_figures_of_the_readme_are_in_the_benchmarks() -> None:
    why = README.partition("## Why")[2].partition("\n## ")[0]
    figures = re.findall(r"\d+,\d{3}|\d+ of \d+ tasks", why)
    measured = (ROOT / "docs/operations/measure.md").read_text()
    assert len(figures) == 3
    assert not [figure for figure in figures if figure.removesuffix(" tasks") not in measured]


def test_commands_name_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    files = [ROOT / "README.md", ROOT / "Containerfile", ROOT / "compose.yaml", *sorted((ROOT / "docs").rglob("*.md"))]
    names = [
        name
        for file in files
        for name in re.findall(r"verbatim(?:-sandbox)?[-:/](\d+\.\d+\.\d+(?:\.dev\d+)?)", file.read_text())
    ]
    assert set(names) == {version}
