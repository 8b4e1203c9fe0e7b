"""Truncation of texts to a number of bytes of UTF-8."""

from __future__ import annotations


def truncate_to_bytes(text: str, max_bytes: int) -> tuple[str, int]:
    """Return the first `max_bytes` bytes of `text`, cut between characters, and the number of characters that were cut."""
    if len(text) <= max_bytes // 4:
        return text, 0
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return text, 0
    start = data[:max_bytes].decode("utf-8", "ignore")
    return start, len(text) - len(start)


def truncate_output(text: str, max_bytes: int) -> str:
    """Return `text`, cut behind `max_bytes` bytes with a notice for the model."""
    start, count = truncate_to_bytes(text, max_bytes)
    return f"{start}\n[The output is too long: {count} more characters were cut.]" if count else text
