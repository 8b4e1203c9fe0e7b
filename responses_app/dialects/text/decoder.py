"""Incremental decoders of the tokens of a generation, tokens that need no decoder, and validation of UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from typing import Protocol


class Decoder(Protocol):
    """Incremental decoder of the tokens of a generation."""

    def feed(self, token: int) -> str:
        """Return the characters completed by `token`."""
        ...

    def flush(self) -> str:
        """Return the incomplete rest, as U+FFFD if invalid."""
        ...

    def take_error(self) -> bool:
        """Return True if U+FFFD has replaced invalid bytes since the last call."""
        ...

    @property
    def has_rest(self) -> bool:
        """True if tokens have not completed a character yet."""
        ...

    @property
    def is_between_chars(self) -> bool:
        """True if the next token may pass the decoder by if it is plain."""
        ...


class ByteDecoder:
    """Decoder for byte-level tokenizers: decodes the bytes of the tokens incrementally."""

    def __init__(self, table: Sequence[bytes], hidden: frozenset[int]) -> None:
        self._table = table
        self._hidden = hidden
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._has_error = False

    def feed(self, token: int) -> str:
        """Return the characters completed by `token`."""
        if token in self._hidden or not 0 <= token < len(self._table):
            return self.flush()
        return self._decode(self._table[token])

    def flush(self) -> str:
        """Return the incomplete rest as U+FFFD."""
        return self._decode(b"", final=True)

    def take_error(self) -> bool:
        """Return True if U+FFFD has replaced invalid bytes since the last call."""
        has_error, self._has_error = self._has_error, False
        return has_error

    @property
    def has_rest(self) -> bool:
        """True if tokens have not completed a character yet."""
        return bool(self._utf8.getstate()[0])

    @property
    def is_between_chars(self) -> bool:
        """True if the next token may pass the decoder by if it is plain."""
        return not self.has_rest

    def _decode(self, data: bytes, *, final: bool = False) -> str:
        before = self._utf8.getstate()[0]
        text = self._utf8.decode(data, final)
        # The bytes may also contain U+FFFD itself.
        if "\ufffd" in text and text.count("\ufffd") > (before + data).count("\ufffd".encode()):
            self._has_error = True
        return text


class WindowDecoder:
    """Decoder for all other tokenizers: decodes a window of the newest tokens again and returns the new text."""

    def __init__(self, decode: Callable[[Sequence[int]], str], hidden: frozenset[int]) -> None:
        self._decode = decode
        self._hidden = hidden
        self._known: list[int] = []
        self._new: list[int] = []
        self._has_error = False

    def feed(self, token: int) -> str:
        """Return the characters completed by `token`."""
        if token in self._hidden:
            return self.flush()
        self._new.append(token)
        text = self._new_text()
        return "" if text.endswith("\ufffd") else self._accept(text)

    def flush(self) -> str:
        """Return the rest of the text."""
        return self._accept(self._new_text()) if self._new else ""

    def take_error(self) -> bool:
        """Return True if the text contains U+FFFD since the last call: the tokenizer does not tell which bytes were invalid."""
        has_error, self._has_error = self._has_error, False
        return has_error

    @property
    def has_rest(self) -> bool:
        """True if tokens have not completed a character yet."""
        return bool(self._new) and self._new_text().endswith("\ufffd")

    @property
    def is_between_chars(self) -> bool:
        """True if the next token may pass the decoder by if it is plain. The first token of a text may lose its space."""
        return bool(self._known) and not self._new

    def _new_text(self) -> str:
        return self._decode([*self._known, *self._new])[len(self._decode(self._known)) :]

    def _accept(self, text: str) -> str:
        if text:
            self._known, self._new = self._new, []
        self._has_error = self._has_error or "\ufffd" in text
        return text


class PlainTokens(dict[int, str]):
    """Texts of plain tokens by id, filled when a token is first looked up. Any other token has an empty text.

    A token is plain if it consists of whole characters and cannot be a part of a marker.
    """

    def __init__(self, text_of: Callable[[int], str]) -> None:
        super().__init__()
        self._text_of = text_of

    def __missing__(self, token: int) -> str:
        """Look a token up for the first time."""
        text = self[token] = self._text_of(token)
        return text

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of `tokens`; empty if any of them is not plain."""
        if len(tokens) == 1:
            return self[tokens[0]]
        texts = [self[token] for token in tokens]
        return "".join(texts) if all(texts) else ""


def whole_text(data: bytes) -> str:
    """Decode the bytes of a token; empty if these are not whole characters, or have a character that stands for invalid bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return "" if "\ufffd" in text else text


class Utf8Validator:
    """Incremental validator: a character may be cut between two pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def is_valid(self, piece: bytes) -> bool:
        """Return False if `piece` cannot continue the text so far. The text then begins anew."""
        try:
            self._decoder.decode(piece)
        except UnicodeDecodeError:
            self._decoder.reset()
            return False
        return True

    @property
    def has_rest(self) -> bool:
        """True if the text so far ends inside of a character."""
        return bool(self._decoder.getstate()[0])

    def is_whole(self) -> bool:
        """Return True if the text so far ends between two characters. The text then begins anew."""
        incomplete_bytes = self._decoder.getstate()[0]
        self._decoder.reset()
        return not incomplete_bytes
