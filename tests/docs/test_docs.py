"""The tables of the docs say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from project.env import READ
from responses_app.schemas.create_response import REFUSED, CreateResponse

DOCS = Path(__file__).resolve().parents[2] / "docs"


def rows(file: str, heading: str) -> dict[str, list[str]]:
    """The first table below a heading, by its first cell without backticks."""
    text = (DOCS / file).read_text().split(heading, 1)[1]
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found[cells[0].strip("`| ")] = cells[1:]
        elif found:
            break
    return found


FIELDS = rows("api.md", "## Fields of a create request")


def test_table_of_settings_has_every_setting() -> None:
    assert settings.configured
    table = rows("settings.md", "# Settings")
    assert set(table) == set(READ)


@pytest.mark.parametrize("name", sorted(READ))
def test_setting_is_documented_with_its_default(name: str) -> None:
    shown, default = rows("settings.md", "# Settings")[name][0], READ[name].default
    if shown.startswith("`"):
        assert shown == f"`{default}`"
    else:
        assert default == ""


def test_every_request_field_of_the_code_and_of_the_openai_package_is_in_the_table() -> None:
    ours = set(CreateResponse.model_fields) | set(REFUSED)
    assert set(FIELDS) == ours
    missing = set(ResponseCreateParamsBase.__annotations__) - ours
    assert not missing, f"the openai package has fields that were never decided on: {missing}"


def test_a_field_is_documented_as_refused_exactly_when_it_is() -> None:
    assert {name for name, cells in FIELDS.items() if cells[0].strip(" |") == "refused"} == set(REFUSED)


@pytest.mark.parametrize("cells", [pytest.param(cells, id=name) for name, cells in FIELDS.items()])
def test_every_verdict_is_one_of_the_four(cells: list[str]) -> None:
    assert re.match(r"(honoured|echoed|accepted|refused)\b", cells[0])
