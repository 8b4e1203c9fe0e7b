"""Extreme values in the URL of a page: an error message, never status 500."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client

from responses_app.web.responses import filters
from tests.support.web.page_case import made

pytestmark = pytest.mark.slow

TIMES: tuple[str | bytes, ...] = (
    "0001-01-01T00:00",
    "0001-01-01T00:00+14:00",
    "9999-12-31T23:59:59",
    "9999-12-31T23:59:59-23:59",
    "2026-02-30T00:00",
    "99999999999d",
    "999999d",
)
NUMBERS: tuple[str | bytes, ...] = ("9" * 5000, "9223372036854775808", "-1", "1e400", "nan", "999999999.999999", "٣٣٣", "²")
TEXTS: tuple[str | bytes, ...] = (
    "a\0b",
    "\ud800".encode("utf-8", "surrogatepass"),
    b"\xff\xfe",
    "=",
    "a=" + "b" * 5000,
    "%",
    "\\",
    "'",
)
VALUES = TIMES + NUMBERS + TEXTS
# Parameters that take times, and parameters that take numbers. All others take text, where a time or a number is like any other.
TIME_NAMES = frozenset({"since", "until"})
NUMBER_NAMES = frozenset({"key", "seconds", "first", "tokens", "rate", "after", "before", "at", "p"})
NAMES = (*filters.NAMES, "after", "before", "live")
PAGES = (
    ("/responses/resp_1/events", "after"),
    ("/responses/resp_1/events", "at"),
    ("/responses/resp_1/wire", "after"),
    ("/responses/resp_1/prompt", "after"),
    ("/responses/resp_1/chain", "after"),
    ("/responses/resp_1/chain", "before"),
    ("/responses/resp_1/live", "after"),
    ("/responses/compare", "a"),
    ("/responses/resp_1/rerun", "column"),
    ("/responses/resp_1/rerun", "tools"),
    ("/responses/resp_1/rerun/column", "run"),
    ("/responses/resp_1", "input"),
    ("/responses/resp_1/rerun/context", "until"),
    ("/responses/resp_1/rerun/context", "end"),
    ("/chat", "q"),
    ("/chat", "before"),
    ("/chat", "previous_response_id"),
    ("/chat/threads", "q"),
    ("/admin/responses_app/response/", "q"),
    ("/admin/responses_app/response/", "p"),
    ("/admin/responses_app/item/", "q"),
)
WRONG_TIMES = ("0001-01-01T00:00", "9999-12-31T23:59:59-23:59", "999999d", "99999999999d")


@pytest.fixture
def operator(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("root", "", "x"))
    client.raise_request_exception = False
    made("resp_1")
    return client


def values_of(name: str) -> tuple[str | bytes, ...]:
    """Return the values for a parameter: those of its kind, and texts."""
    return TEXTS + (TIMES if name in TIME_NAMES else NUMBERS if name in NUMBER_NAMES else ())


@pytest.mark.parametrize("name", NAMES)
def test_no_filter_of_the_list_fails(operator: Client, name: str) -> None:
    answers = {value: operator.get(f"/responses?{name}={quote(value)}").status_code for value in values_of(name)}
    assert {value: status for value, status in answers.items() if status != 200} == {}


def test_no_value_in_all_filters_of_the_list_fails(operator: Client) -> None:
    answers = {
        value: operator.get("/responses?" + "&".join(f"{name}={quote(value)}" for name in filters.NAMES)) for value in VALUES
    }
    assert {value: answer.status_code for value, answer in answers.items() if answer.status_code != 200} == {}


@pytest.mark.parametrize(("page", "name"), PAGES)
def test_no_other_page_fails(operator: Client, page: str, name: str) -> None:
    answers = {value: operator.get(f"{page}?{name}={quote(value)}").status_code for value in values_of(name)}
    assert {value: status for value, status in answers.items() if status >= 500} == {}


@pytest.mark.parametrize("path", ["events/{}", "keys/{}", "items/{}"])
def test_no_number_of_a_path_fails(operator: Client, path: str) -> None:
    numbers = ("2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "9" * 5000)
    root = "/" if path.startswith("keys") else "/responses/resp_1/"
    assert {operator.get(root + path.format(number)).status_code for number in numbers} == {404}


@pytest.mark.parametrize("value", WRONG_TIMES)
@pytest.mark.parametrize("name", ["since", "until"])
def test_a_time_outside_of_the_calendar_is_an_error_message(operator: Client, name: str, value: str) -> None:
    html = operator.get(f"/responses?{name}={quote(value)}").content.decode()
    assert 'role="alert"' in html
    assert "resp_1" in html
