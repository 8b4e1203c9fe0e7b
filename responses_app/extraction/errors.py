"""Errors of the extraction."""

from __future__ import annotations

UNSUPPORTED, INVALID = "unsupported_file", "invalid_file"


class ExtractionError(ValueError):
    """File without a readable text. The message begins with a capital letter; `code` is the error code of the API."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def unsupported(what: str) -> ExtractionError:
    """Return the error for a format that is not read."""
    return ExtractionError(
        f"{what} Files with text are PDF, DOCX, XLSX, PPTX, HTML, Markdown, CSV, JSON and plain text.", UNSUPPORTED
    )


def invalid(message: str) -> ExtractionError:
    """Return the error for a file that is broken or exceeds a limit."""
    return ExtractionError(message, INVALID)


class ExtractorBusy(RuntimeError):
    """Too many files of the project wait to be read."""


class ExtractorUnavailable(ExtractorBusy):
    """The sandbox that reads files is not reachable."""
