"""Opening of a checkpoint by its folder."""

from __future__ import annotations

from responses_app.dialects.base import Dialect
from responses_app.dialects.checkpoint import Checkpoint
from responses_app.dialects.registry import open_checkpoint


def open_dialect(
    source: str, *, reasoning_parser: str | None = None, tool_parser: str | None = None, chat_template: str | None = None
) -> Dialect:
    """Create the dialect of the checkpoint folder `source`, with the named parsers in place of the detected ones."""
    checkpoint = Checkpoint(source, chat_template)
    return open_checkpoint(checkpoint, checkpoint.detect_family(reasoning_parser, tool_parser))[0]
