"""Decoder of harmony messages: header and text by the harmony library, plain tokens without it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from openai_harmony import HarmonyEncoding, HarmonyError, StreamableParser

from responses_app.dialects.harmony.header import MessageHeader
from responses_app.dialects.harmony.tokens import ASSISTANT, END, MESSAGE, START, plain_tokens, token_bytes
from responses_app.dialects.text.decoder import Utf8Validator


class MessageDecoder:
    """Decoder of one message after the other.

    `holds_bytes` is True if the library may hold a part of a character back. Otherwise the library needs to see no plain token.
    The library begins a message at the first token that is not plain: most messages have no such token.
    """

    def __init__(self, encoding: HarmonyEncoding) -> None:
        self.holds_bytes = False
        self._encoding = encoding
        self._header: Sequence[int] = ()
        self._parser: StreamableParser | None = None
        self._plain = plain_tokens(encoding)
        self._utf8 = Utf8Validator()
        self._has_invalid_bytes = False  # behind these the library may hold bytes that `_utf8` has forgotten
        self._received = 0  # characters received from the library in this message

    def begin(self, header: Sequence[int]) -> MessageHeader | None:
        """Begin a message with the tokens of a header. Return None if the library cannot parse the header."""
        self._received, self.holds_bytes, self._has_invalid_bytes = 0, False, False
        self._header, self._parser = header, None
        return _parse_header(self._encoding, tuple(header))

    def feed(self, token: int) -> tuple[str, bool]:
        """Return the text completed by `token`, and True if the bytes are valid UTF-8 behind the bytes before."""
        text = "" if self.holds_bytes else self._plain[token]
        if text:
            return text, True
        parser = self._library_parser()
        parser.process(token)
        text = parser.last_content_delta or ""
        self._received += len(text)
        is_valid = self._utf8.is_valid(token_bytes(self._encoding, token))
        self._has_invalid_bytes = self._has_invalid_bytes or not is_valid
        self.holds_bytes = self._has_invalid_bytes or not text or "\ufffd" in text or self._utf8.has_rest
        return text, is_valid

    def end(self) -> tuple[str, bool]:
        """End the message. Return the text held back, with U+FFFD for broken UTF-8, and True if the text ended with a whole character."""
        remaining_text = ""
        if self.holds_bytes:
            parser = self._library_parser()
            parser.process(END)
            remaining_text = "".join(part.text for part in parser.messages[-1].content)[self._received :]
        return remaining_text, self._utf8.is_whole()

    def _library_parser(self) -> StreamableParser:
        """Return the library's parser of the open message."""
        if self._parser is None:
            self._parser = _begin_message(self._encoding, self._header)
        return self._parser


def _begin_message(encoding: HarmonyEncoding, header: Sequence[int]) -> StreamableParser:
    """Return the library's parser behind the tokens of a header. Raises HarmonyError."""
    parser = StreamableParser(encoding, None)
    for token in (START, ASSISTANT, *header, MESSAGE):
        parser.process(token)
    return parser


@lru_cache(1024)
def _parse_header(encoding: HarmonyEncoding, header: tuple[int, ...]) -> MessageHeader | None:
    """Parse the tokens of a header. Return None if the library cannot parse the header."""
    try:
        parser = _begin_message(encoding, header)
    except HarmonyError:
        return None
    return MessageHeader(parser.current_channel, parser.current_recipient)
