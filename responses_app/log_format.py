"""The log format: one line for each record, in which no text of a client can forge another line or reach a terminal."""

from __future__ import annotations

import logging

from responses_app.invisible import escaped

LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
# Begins every line that continues a record. No record begins with a blank.
CONTINUATION = "    | "


class LineFormatter(logging.Formatter):
    """A formatter whose records are escaped.

    A traceback, a stack and the text of `extra={"detail": text}` follow in lines of their own, each behind CONTINUATION.
    """

    def __init__(self) -> None:
        super().__init__(LINE)

    def format(self, record: logging.LogRecord) -> str:
        """Format the record. What another formatter has kept of its traceback is not used."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        details = [str(getattr(record, "detail", ""))]
        if record.exc_info:
            details.append(self.formatException(record.exc_info))
        elif record.exc_text:
            details.append(record.exc_text)
        if record.stack_info:
            details.append(self.formatStack(record.stack_info))
        return escaped(self.formatMessage(record)) + "".join(continued(detail) for detail in details if detail)


def continued(text: str) -> str:
    """Put each line of the text, escaped, on a line that no reader takes for a record."""
    return "".join(f"\n{CONTINUATION}{escaped(line)}" for line in text.split("\n"))


def escape_all_handlers() -> None:
    """Give this format to the handlers that libraries have made for themselves, such as vLLM's."""
    loggers = [one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)]
    for logger in loggers:
        for handler in logger.handlers:
            if isinstance(handler, logging.StreamHandler) and not isinstance(handler.formatter, LineFormatter):
                handler.setFormatter(LineFormatter())


def log_to_stderr() -> None:
    """Write the records of a process without Django's settings to stderr, from INFO on."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
