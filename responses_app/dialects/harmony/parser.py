"""Output parser of the harmony format, tolerant of malformed output."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from openai_harmony import HarmonyEncoding

from responses_app.dialects.harmony.header import MessageHeader, header_problem, is_well_formed, parse_lenient
from responses_app.dialects.harmony.message_decoder import MessageDecoder
from responses_app.dialects.harmony.recipients import Recipients
from responses_app.dialects.harmony.tokens import (
    CALL,
    CHANNEL,
    CONSTRAIN,
    END,
    END_OF_TEXT,
    FIRST_SPECIAL,
    MESSAGE,
    RETURN,
    START,
    STOPS,
    plain_tokens,
    string_tokens,
    token_bytes,
)
from responses_app.dialects.text.decoder import PlainTokens
from responses_app.dialects.text.delta_buffer import ARGUMENTS, COMMENTARY, FINAL, REASONING, DeltaBuffer, TextChannel
from responses_app.dialects.text.json_tracker import JsonTracker
from responses_app.dialects.text.logprobs import to_wire
from responses_app.dialects.toolset import Toolset
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Call, Delta, Json
from responses_app.protocol.output_problems import (
    INVALID_UTF8,
    MALFORMED_HEADER,
    TEXT_IN_CALL,
    UNFINISHED_CALL,
    UNFINISHED_MARKER,
)

# Function names have at most 128 characters; a longer header is text of a model that omitted the header.
MAX_HEADER = 160

# Text channel of each message channel; unknown channels count as final.
CHANNELS: dict[str | None, TextChannel] = {"analysis": REASONING, "commentary": COMMENTARY, "final": FINAL}

_FINAL_HEADER = (CHANNEL, 17196)  # <|channel|>final
_ROLE = re.compile(r"\s*(?:assistant|user|system|developer|tool|functions\.[\w\-]+)")
_UNFINISHED = re.compile(r"to?=?|assist\w*")


class HarmonyParser:
    """Tracks message frames by special tokens; the harmony library parses headers and text.

    Tokens are fed one at a time, so the grouping of tokens in chunks has no effect. Chunks of plain tokens inside of a message take
    a shorter way. With `one_call` everything after the first complete call is dropped. With `bound` a grammar constrains the
    final text to JSON, as it does the arguments of declared tools.

    Special tokens are no text, except inside JSON strings constrained by a grammar. A grammar matches special tokens by their
    text, so the JSON continues after them.

    Misplaced text (after the arguments of a call, or a header without a message) becomes message text; malformed output never
    raises. The buffer of the deltas gets a problem for each part that is not understood.
    """

    def __init__(self, encoding: HarmonyEncoding, tools: Toolset, *, one_call: bool = False, bound: bool = False) -> None:
        self.reasoning_tokens, self.unread_tokens, self.stop_sequence = 0, 0, None
        self.done = False
        self._encoding = encoding
        self._one_call = one_call
        self._bound = bound
        self._recipients = Recipients(tools)
        self._deltas = DeltaBuffer()
        self._message = MessageDecoder(encoding)
        self._header: list[int] | None = []  # None while a message is open
        self._started = False  # the header follows a <|start|>, so it begins with a role
        self._channel: TextChannel = FINAL
        self._json: JsonTracker | None = None  # tracks a message constrained to JSON by a grammar
        self._white_space: str | None = ""  # white space held back: a message of white space only is dropped
        self._plain: PlainTokens | None = None  # tokens that are text of the open item, whatever stands in the text
        self._logprobs: list[Json] = []

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Return the deltas completed by `chunk`."""
        if self._plain is not None and not chunk.logprobs and (text := self._plain.text(chunk.tokens)):
            if self._channel is REASONING:
                self.reasoning_tokens += len(chunk.tokens)
            return [self._channel.make_delta(text, ())]
        for index, token in enumerate(chunk.tokens):
            if self.done:
                self.unread_tokens = len(chunk.tokens) - index
                break
            self._feed_token(token, chunk.logprobs[index] if index < len(chunk.logprobs) else None)
        self._plain = self._plain_tokens()
        return self._deltas.take()

    def finish(self) -> list[Delta]:
        """Return the text held back, without an incomplete character."""
        if not self.done and self._header is not None:
            self._flush_header(cut=True)
        elif not self.done:
            self._flush_message(cut=True)
            if self._channel is ARGUMENTS:
                self._deltas.report(UNFINISHED_CALL)
        return self._deltas.take_rest()

    def _plain_tokens(self) -> PlainTokens | None:
        """Return the table of tokens that are text of the open item at this point; None if the next token has to be looked at."""
        if (
            self._header is not None
            or self._logprobs
            or self.done
            or self._message.holds_bytes
            or not self._deltas.has_open_item
        ):
            return None
        if self._white_space is not None and self._channel is not ARGUMENTS:
            return None
        if self._json is None:
            return plain_tokens(self._encoding)
        return string_tokens(self._encoding) if self._json.is_inside_string else None

    def _feed_token(self, token: int, logprob: Logprob | None) -> None:
        if token >= FIRST_SPECIAL and self._is_in_json_string(token):
            self._append_as_text(token, logprob)
        elif token >= FIRST_SPECIAL:
            handler = self._FRAME_HANDLERS.get(token)
            if handler is not None:
                handler(self, token)
        elif self._header is None:
            self._content(token, logprob)
        else:
            self._header.append(token)
            if len(self._header) > MAX_HEADER:
                self._open_message()

    def _is_in_json_string(self, token: int) -> bool:
        """Return True if the special token is inside a JSON string. Stop tokens end the engine and cannot be."""
        return self._header is None and self._json is not None and self._json.in_string and token not in STOPS

    def _append_as_text(self, token: int, logprob: Logprob | None) -> None:
        """Append the token as text, without the library, which would end the message."""
        self._count_token(logprob)
        self._append(self._bytes(token).decode(errors="replace"))

    # The frame of the messages

    def _on_start(self, _token: int) -> None:
        self._end_message()
        self._started = True

    def _on_channel(self, token: int) -> None:
        header = self._header
        if header is None or parse_lenient(self._header_text(header)).stray:
            self._end_message()
            header = self._header = []
        header.append(token)

    def _on_constrain(self, token: int) -> None:
        if self._header is not None:
            self._header.append(token)

    def _on_message(self, _token: int) -> None:
        if self._header is not None:
            self._open_message()

    def _on_closer(self, _token: int) -> None:
        self._end_message()

    _FRAME_HANDLERS: ClassVar[dict[int, Callable[[HarmonyParser, int], None]]] = {
        START: _on_start,
        CHANNEL: _on_channel,
        CONSTRAIN: _on_constrain,
        MESSAGE: _on_message,
        END: _on_closer,
        CALL: _on_closer,
        RETURN: _on_closer,
        END_OF_TEXT: _on_closer,
    }

    # A message

    def _open_message(self) -> None:
        """End the header and start the text of the message."""
        header, self._header = self._header or [], None
        text = self._header_text(header)
        self._report_header(header)
        parsed = self._message.begin(header) if is_well_formed(text) else None
        if parsed is None:
            self._message.begin(_FINAL_HEADER)
        self._route(parsed or parse_lenient(text))

    def _report_header(self, tokens: Sequence[int]) -> None:
        text: str = self._encoding.decode(tokens)
        text = text.strip().removeprefix("assistant") if self._started else text
        for problem in (header_problem(text), self._recipients.problem(parse_lenient(text).recipient)):
            if problem is not None:
                self._deltas.report(*problem)

    def _route(self, header: MessageHeader) -> None:
        """Choose the text channel of the new message, and append stray text of the header."""
        self._white_space, self._logprobs, self._json = "", [], None
        name = self._recipients.function_name(header.recipient)
        if name is None:
            self._channel = CHANNELS.get(header.channel, FINAL)
            self._json = JsonTracker() if self._bound and self._channel is FINAL else None
        elif not self._recipients.tools.allows(name):
            self._channel = COMMENTARY
        else:
            self._call(name, header)
            return
        self._append(header.stray)

    def _call(self, name: str, header: MessageHeader) -> None:
        if header.stray:
            self._deltas.append(COMMENTARY, header.stray)
            self._deltas.end()
        self._deltas.add(Call(name, "custom" if self._recipients.is_raw(header.recipient) else "function"))
        self._channel, self._json = ARGUMENTS, JsonTracker() if self._recipients.takes_json(header.recipient) else None

    def _content(self, token: int, logprob: Logprob | None) -> None:
        self._count_token(logprob)
        text, is_valid = self._message.feed(token)
        if text:
            self._append_content(text)
        if not is_valid and not self.done:
            self._deltas.report(INVALID_UTF8)

    def _count_token(self, logprob: Logprob | None) -> None:
        if self._channel is REASONING:
            self.reasoning_tokens += 1
        elif logprob is not None and self._channel is not ARGUMENTS:
            self._logprobs.append(to_wire(logprob, self._bytes))

    def _append_content(self, text: str) -> None:
        """Append text of the open message. Text after the JSON object of a call becomes commentary."""
        own_length = self._json.read(text) if self._json is not None else len(text)
        self._append(text[:own_length])
        after_call = text[own_length:]
        if after_call.strip() and self._channel is ARGUMENTS:
            self.done = self._one_call
            self._deltas.end()
            if not self.done:
                self._deltas.report(TEXT_IN_CALL)
            self._channel, self._json, self._white_space = COMMENTARY, None, ""
        if not self.done:
            self._append(after_call)

    def _append(self, text: str) -> None:
        """Append text of the open message; white space at the start is held back until the first other character."""
        if self._white_space is not None and self._channel is not ARGUMENTS:
            if not text or text.isspace():
                self._white_space += text
                return
            text, self._white_space = self._white_space + text, None
        logprobs, self._logprobs = self._logprobs, []
        self._deltas.append(self._channel, text, logprobs)

    def _end_message(self) -> None:
        """Close the open message, or a header without a message."""
        if self._header is None:
            self._flush_message(cut=False)
        else:
            self._flush_header(cut=False)
        self._deltas.end()
        self.done = self.done or (self._one_call and self._channel is ARGUMENTS)
        self._header, self._started, self._channel = [], False, FINAL

    def _flush_message(self, *, cut: bool) -> None:
        """Append the text held back: broken UTF-8 becomes U+FFFD at the end of a message, and is dropped at a cut."""
        remaining_text, is_whole = self._message.end()
        if remaining_text:
            self._append_content(remaining_text.rstrip("\ufffd") if cut else remaining_text)
        if not is_whole and not self.done:
            self._deltas.report(INVALID_UTF8)

    def _flush_header(self, *, cut: bool) -> None:
        """Append the contents of a header without a message: stray text, or a call without arguments."""
        text = self._header_text(self._header or [])
        header = parse_lenient(text)
        stray = "" if cut and _UNFINISHED.fullmatch(header.stray) else header.stray
        if text.strip():
            self._deltas.report(UNFINISHED_MARKER if cut and not stray else MALFORMED_HEADER, text.strip())
        if stray or (self._recipients.function_name(header.recipient) and not cut):
            self._message.begin(_FINAL_HEADER)
            self._route(MessageHeader(header.channel, header.recipient))
            self._append(stray)
            self._message.end()

    def _header_text(self, header: Sequence[int]) -> str:
        """Decode a header without the role."""
        text: str = self._encoding.decode(header)
        role = _ROLE.match(text) if self._started else None
        return text[role.end() :] if role else text

    def _bytes(self, token: int) -> bytes:
        return token_bytes(self._encoding, token)
