"""Log format: an escaped line per record. Text of a client can neither forge log lines nor control a terminal."""

from __future__ import annotations

import logging

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
        """Format the record. A traceback is formatted anew, even if `exc_text` has a cached text."""
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
    """Put each line of the text, escaped, behind CONTINUATION."""
    return "".join(f"\n{CONTINUATION}{escaped(line)}" for line in text.split("\n"))


def escape_all_handlers() -> None:
    """Set LineFormatter on the stream handlers of all libraries, for example of vLLM."""
    loggers = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    for logger in loggers:
        for handler in logger.handlers:
            if isinstance(handler, logging.StreamHandler) and not isinstance(handler.formatter, LineFormatter):
                handler.setFormatter(LineFormatter())


def log_to_stderr() -> None:
    """Log to stderr from level INFO, in a process without Django settings."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
