"""Log format: an escaped line per record. Text of a client can neither forge log lines nor control a terminal."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime

from responses_app.utils.invisible import escaped

LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
# Prefix of every line that continues a record. No record begins with a blank.
CONTINUATION = "    | "


class LineFormatter(logging.Formatter):
    """Formatter of escaped log lines.

    A traceback, a stack and the text of `extra={"detail": text}` follow on separate lines, each starting with CONTINUATION.
    """

    def __init__(self) -> None:
        super().__init__(LINE)

    def format(self, record: logging.LogRecord) -> str:
        """Format the record."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        return escaped(self.formatMessage(record)) + "".join(map(continued, _details(self, record)))


class JsonFormatter(logging.Formatter):
    """Formatter of log lines as JSON objects in ASCII: text of a client can neither make a line nor control a terminal.

    `extra={"fields": mapping}` adds fields in place of the message. Tracebacks and details are in `detail`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format the record."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname, "logger": record.name}
        fields = getattr(record, "fields", None)
        line |= {"message": record.getMessage()} if fields is None else fields
        if details := _details(self, record):
            line["detail"] = "\n".join(details)
        return json.dumps(line, default=str)


def make_formatter() -> logging.Formatter:
    """Return the formatter that RESPONSES_LOG_FORMAT names; also called in processes without Django settings."""
    return JsonFormatter() if os.environ.get("RESPONSES_LOG_FORMAT") == "json" else LineFormatter()


def _details(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    """Return the texts behind the message of a record. A traceback is formatted anew, even if `exc_text` has a cached text."""
    details = [str(getattr(record, "detail", ""))]
    if record.exc_info:
        details.append(formatter.formatException(record.exc_info))
    elif record.exc_text:
        details.append(record.exc_text)
    if record.stack_info:
        details.append(formatter.formatStack(record.stack_info))
    return [detail for detail in details if detail]


def continued(text: str) -> str:
    """Put each line of the text, escaped, behind CONTINUATION."""
    return "".join(f"\n{CONTINUATION}{escaped(line)}" for line in text.split("\n"))


def escape_all_handlers() -> None:
    """Set the formatter of this server on the stream handlers of all libraries, for example of vLLM."""
    loggers = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    for logger in loggers:
        for handler in logger.handlers:
            if isinstance(handler, logging.StreamHandler) and not isinstance(handler.formatter, LineFormatter | JsonFormatter):
                handler.setFormatter(make_formatter())


def log_to_stderr() -> None:
    """Log to stderr from level INFO, in a process without Django settings."""
    handler = logging.StreamHandler()
    handler.setFormatter(make_formatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
