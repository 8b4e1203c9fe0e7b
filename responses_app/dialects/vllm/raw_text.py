"""Text of a generation with the position up to which a parser has passed on the text."""

from __future__ import annotations

# Number of characters in which passed text is searched for.
_WINDOW = 4096


class RawText:
    """Generated text. `rest` is the text that a parser holds back."""

    def __init__(self) -> None:
        self._text = ""

    @property
    def rest(self) -> str:
        """Text that was not passed on, with markers."""
        return self._text

    def add(self, text: str) -> None:
        """Append generated text."""
        self._text += text

    def pass_on(self, text: str) -> None:
        """Take `text` as passed on, with all text before; everything if `text` was changed by the parser."""
        at = self._text.find(text, 0, _WINDOW + len(text))
        self._text = self._text[at + len(text) :] if at >= 0 else ""
