"""The log format: no text of a client makes a line of its own or reaches a terminal."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import Http404
from django.test import Client

from responses_app.utils.log_format import CONTINUATION, JsonFormatter, LineFormatter, escape_all_handlers, make_formatter
from responses_app.wire.refusal_filter import RefusalFilter

FORGED = "x\r\n2026-11-22 00:00:00,000 ERROR   responses.run: FORGED\x1b]0;pwned\x07\u2028\u202e\x9b"
RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (DEBUG|INFO|WARNING|ERROR)")


def record(message: str, *arguments: object, error: BaseException | None = None, **extra: object) -> logging.LogRecord:
    raised = (type(error), error, error.__traceback__) if error is not None else None
    made = logging.LogRecord("responses.api", logging.ERROR, __file__, 1, message, arguments, raised)
    made.__dict__.update(extra)
    return made


def lines(one: logging.LogRecord) -> list[str]:
    """The lines of a record, of which the first alone looks like one."""
    text = LineFormatter().format(one)
    first, *other_lines = text.split("\n")
    assert all(line.isprintable() for line in (first, *other_lines))
    assert RECORD.match(first)
    assert all(line.startswith(CONTINUATION) for line in other_lines)
    return [first, *other_lines]


def test_a_message_is_one_line() -> None:
    assert len(lines(record("%s 404 %s", "req_1", FORGED))) == 1


def test_a_traceback_keeps_its_lines() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError as error:
        logged = lines(record("failed: %s", error, error=error))
    assert any("Traceback" in line for line in logged)
    assert any("test_log_format.py" in line for line in logged)


def test_a_detail_and_a_traceback_of_another_formatter_are_escaped() -> None:
    one = record("it failed", detail=f"a\n{FORGED}")
    one.exc_text, one.stack_info = f"Traceback\n{FORGED}", FORGED
    assert len(lines(one)) > 5


def test_every_handler_of_the_settings_has_the_format() -> None:
    logging: Any = settings.LOGGING
    made = [logging["formatters"][one["formatter"]]["()"] for one in logging["handlers"].values()]
    assert made == ["responses_app.utils.log_format.make_formatter"]
    assert logging["root"]["handlers"] == ["stderr"]


def test_handlers_of_libraries_get_the_format() -> None:
    logger, stream = logging.getLogger("library.of.others"), io.StringIO()
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)
    try:
        escape_all_handlers()
        logger.warning("a %s", FORGED)
    finally:
        logger.removeHandler(handler)
    assert stream.getvalue().count("\n") == 1
    assert RECORD.match(stream.getvalue())


@pytest.mark.parametrize("error", [PermissionDenied("no"), Http404("no"), SuspiciousOperation("no")])
def test_a_refusal_has_no_traceback(error: Exception) -> None:
    one = record("Forbidden", error=error)
    assert RefusalFilter().filter(one)
    assert len(lines(one)) == 1


def test_other_errors_keep_theirs() -> None:
    one = record("Failed", error=ValueError("x"))
    assert RefusalFilter().filter(one)
    assert len(lines(one)) > 1


@pytest.mark.django_db
def test_a_page_that_refuses_writes_one_line(capfd: pytest.CaptureFixture[str], client: Client, admin_user: object) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    handler.addFilter(RefusalFilter())
    logger = logging.getLogger("django")
    logger.addHandler(handler)
    try:
        client.force_login(admin_user)  # type: ignore[arg-type]
        assert client.get("/chat?project=of-nobody").status_code == 403
        assert client.get("/responses/resp_none").status_code == 404
        assert Client(enforce_csrf_checks=True).post("/sign-in", {"username": "a"}).status_code == 403
    finally:
        logger.removeHandler(handler)
    logged = capfd.readouterr().err.splitlines()
    assert not [line for line in logged if "Traceback" in line]
    assert len([line for line in logged if "Forbidden (Permission denied): /chat" in line]) == 1


def test_json_is_one_line_in_ascii_with_fields_and_traceback() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError as error:
        text = JsonFormatter().format(record("failed: %s", FORGED, error=error))
    assert text.isascii()
    assert text.isprintable()
    line = json.loads(text)
    assert line["message"] == f"failed: {FORGED}"
    assert line["detail"].startswith("Traceback")
    assert json.loads(JsonFormatter().format(record("x", fields={"route": FORGED})))["route"] == FORGED


@pytest.mark.parametrize(("value", "formatter"), [("json", JsonFormatter), ("text", LineFormatter), (None, LineFormatter)])
def test_environment_names_the_formatter(
    monkeypatch: pytest.MonkeyPatch, value: str | None, formatter: type[logging.Formatter]
) -> None:
    if value is not None:
        monkeypatch.setenv("RESPONSES_LOG_FORMAT", value)
    assert type(make_formatter()) is formatter
