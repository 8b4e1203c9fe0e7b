"""Text buffer with a limit of characters."""

from __future__ import annotations

from responses_app.extraction.limits import MAX_CHARS


class TextLimitReached(Exception):
    """Limit of the text reached; the rest of the file is not needed."""


class TextBuffer:
    """Text that is collected in pieces, up to `limit` characters, of which `left` are left."""

    def __init__(self, limit: int = MAX_CHARS) -> None:
        self._pieces: list[str] = []
        self.left = limit
        self.is_cut = False

    def add(self, piece: str) -> None:
        """Append a piece. Raises TextLimitReached when the limit is exceeded."""
        self._pieces.append(piece[: self.left])
        if len(piece) > self.left:
            self.is_cut = True
            self.left = 0
            raise TextLimitReached
        self.left -= len(piece)

    @property
    def text(self) -> str:
        """The collected text, without NUL characters and lone surrogates, which Postgres rejects."""
        return "".join(self._pieces).replace("\0", "").encode("utf-8", "replace").decode()
