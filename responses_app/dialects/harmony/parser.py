"""Output parser of the harmony format, tolerant of malformed output."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from openai_harmony import HarmonyEncoding, HarmonyError, StreamableParser

from responses_app.dialects.harmony.header import MessageHeader, header_problem, is_well_formed, parse_lenient
from responses_app.dialects.harmony.own_tools import functions_of
from responses_app.dialects.harmony.tokens import (
    ASSISTANT,
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
    token_bytes,
)
from responses_app.dialects.text.decoder import Utf8Validator
from responses_app.dialects.text.delta_buffer import ARGUMENTS, COMMENTARY, FINAL, REASONING, DeltaBuffer, TextChannel
from responses_app.dialects.text.json_tracker import JsonTracker
from responses_app.dialects.text.logprobs import to_wire
from responses_app.dialects.tools import builtin
from responses_app.dialects.tools.selection import Toolset
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Call, Delta, Json
from responses_app.protocol.output_problems import (
    CALL_WITHOUT_NAME,
    INVALID_UTF8,
    MALFORMED_HEADER,
    TEXT_IN_CALL,
    TOOL_NOT_ALLOWED,
    UNFINISHED_CALL,
    UNFINISHED_MARKER,
    UNKNOWN_RECIPIENT,
)

# Function names have at most 128 characters; a longer header is text of a model that omitted the header.
MAX_HEADER = 160

# Text channel of each message channel; unknown channels count as final.
CHANNELS: dict[str | None, TextChannel] = {"analysis": REASONING, "commentary": COMMENTARY, "final": FINAL}


_FUNCTIONS = "functions."
_FINAL_HEADER = (CHANNEL, 17196)  # <|channel|>final
_ROLE = re.compile(r"\s*(?:assistant|user|system|developer|tool|functions\.[\w\-]+)")
_UNFINISHED = re.compile(r"to?=?|assist\w*")


class HarmonyParser:
    """Tracks message frames by special tokens; the harmony library parses headers and text.

    Tokens are fed one at a time, so the grouping of tokens in chunks has no effect. Only the text of plain tokens inside of a
    message takes a shorter way, past the library: `_open_text` is the channel of such a message. With `one_call` everything after the first
    complete call is dropped. With `bound` a grammar constrains the final text to JSON, as it does the arguments of declared
    tools.

    Special tokens are no text, except inside JSON strings constrained by a grammar. A grammar matches special tokens by their
    text, so the JSON continues after them.

    Misplaced text (after the arguments of a call, or a header without a message) becomes message text; malformed output never
    raises. The buffer of the deltas gets a problem for each part that is not understood.
    """

    def __init__(self, encoding: HarmonyEncoding, tools: Toolset, *, one_call: bool = False, bound: bool = False) -> None:
        self.reasoning_tokens = 0
        self.done = False
        self._encoding = encoding
        self._tools = tools
        self._one_call = one_call
        self._bound = bound
        self._recipients = builtin.recipients(tools.offered)
        self._names = frozenset(str(tool["name"]) for tool in functions_of(tools))
        self._deltas = DeltaBuffer()
        self._parser = StreamableParser(encoding, None)
        self._header: list[int] | None = []  # None while a message is open
        self._started = False  # the header follows a <|start|>, so it begins with a role
        self._channel: TextChannel = FINAL
        self._json: JsonTracker | None = None  # tracks a message constrained to JSON by a grammar
        self._white_space: str | None = ""  # white space held back: a message of white space only is dropped
        self._library_chars = 0  # characters received from the library in this message
        self._may_hold_bytes = False  # the library may hold a part of a character back
        self._plain = plain_tokens(encoding)
        self._open_text: TextChannel | None = None
        self._utf8 = Utf8Validator()  # of the text of the message
        self._logprobs: list[Json] = []

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Return the deltas completed by `chunk`."""
        if self._open_text is not None and not chunk.logprobs and (text := self._plain.text(chunk.tokens)):
            if self._open_text is REASONING:
                self.reasoning_tokens += len(chunk.tokens)
            return [self._open_text.make_delta(text, ())]
        for index, token in enumerate(chunk.tokens):
            if self.done:
                break
            self._feed_token(token, chunk.logprobs[index] if index < len(chunk.logprobs) else None)
        self._open_text = self._channel if self._has_open_text else None
        return self._deltas.take()

    @property
    def _has_open_text(self) -> bool:
        """True if the text of plain tokens is text of the open item, without a look at any character."""
        if self._header is not None or self._json is not None or self._logprobs or self.done or self._may_hold_bytes:
            return False
        return self._deltas.has_open_item and (self._white_space is None or self._channel is ARGUMENTS)

    def finish(self) -> list[Delta]:
        """Return the text held back, without an incomplete character."""
        if not self.done and self._header is not None:
            self._flush_header(cut=True)
        elif not self.done:
            self._flush_library(cut=True)
            if self._channel is ARGUMENTS:
                self._deltas.report(UNFINISHED_CALL)
        return self._deltas.take_rest()

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
        if is_well_formed(text) and self._prime_library(header):
            self._route(MessageHeader(self._parser.current_channel, self._parser.current_recipient))
        else:
            self._prime_library(_FINAL_HEADER)
            self._route(parse_lenient(text))

    def _report_header(self, tokens: Sequence[int]) -> None:
        text: str = self._encoding.decode(tokens)
        text = text.strip().removeprefix("assistant") if self._started else text
        problem = header_problem(text)
        if problem is not None:
            self._deltas.report(*problem)
        self._report_recipient(parse_lenient(text).recipient)

    def _prime_library(self, header: Sequence[int]) -> bool:
        """Let the library parse a header. Return False on failure, after replacing the library's parser."""
        try:
            for token in (START, ASSISTANT, *header, MESSAGE):
                self._parser.process(token)
        except HarmonyError:
            self._parser = StreamableParser(self._encoding, None)
            return False
        return True

    def _route(self, header: MessageHeader) -> None:
        """Choose the text channel of the new message, and append stray text of the header."""
        self._white_space, self._library_chars, self._may_hold_bytes, self._logprobs, self._json = "", 0, False, [], None
        name = self._function_name(header.recipient)
        if name is None:
            self._channel = CHANNELS.get(header.channel, FINAL)
            self._json = JsonTracker() if self._bound and self._channel is FINAL else None
        elif not self._tools.allows(name):
            self._channel = COMMENTARY
        else:
            self._call(name, header)
            return
        self._append(header.stray)

    def _report_recipient(self, recipient: str | None) -> None:
        name = self._function_name(recipient)
        if recipient is not None and name is None:
            is_call = recipient == _FUNCTIONS
            self._deltas.report(CALL_WITHOUT_NAME if is_call else UNKNOWN_RECIPIENT, recipient)
        elif name is not None and not self._tools.allows(name):
            self._deltas.report(TOOL_NOT_ALLOWED, name)

    def _call(self, name: str, header: MessageHeader) -> None:
        if header.stray:
            self._deltas.append(COMMENTARY, header.stray)
            self._deltas.end()
        is_own = header.recipient in self._recipients
        is_raw = is_own and header.recipient in builtin.RAW_RECIPIENTS
        self._deltas.add(Call(name, "custom" if is_raw else "function"))
        has_json = not is_raw and (is_own or name in self._names)
        self._channel, self._json = ARGUMENTS, JsonTracker() if has_json else None

    def _function_name(self, recipient: str | None) -> str | None:
        """Return the function named by the recipient; None for persons, formats and undeclared tools."""
        if recipient is None or recipient in self._names:
            return recipient
        # Models also write the names of their own tools as functions.
        name = recipient.removeprefix(_FUNCTIONS)
        if name in self._recipients:
            return self._recipients[name]
        return (name or None) if recipient.startswith(_FUNCTIONS) else None

    def _content(self, token: int, logprob: Logprob | None) -> None:
        self._count_token(logprob)
        text = "" if self._may_hold_bytes else self._plain[token]
        if text:
            self._append_content(text)
            return
        self._parser.process(token)
        delta = self._parser.last_content_delta or ""
        is_valid = self._utf8.is_valid(self._bytes(token))
        self._may_hold_bytes = not delta or "\ufffd" in delta or self._utf8.has_rest
        if delta:
            self._library_chars += len(delta)
            self._append_content(delta)
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
            self._flush_library(cut=False)
        else:
            self._flush_header(cut=False)
        self._deltas.end()
        self.done = self.done or (self._one_call and self._channel is ARGUMENTS)
        self._header, self._started, self._channel = [], False, FINAL

    def _flush_library(self, *, cut: bool) -> None:
        """Append the rest held by the library: broken UTF-8 becomes U+FFFD at the end of a message, and is dropped at a cut."""
        self._parser.process(END)
        if self._may_hold_bytes:
            message = "".join(part.text for part in self._parser.messages[-1].content)
            rest = message[self._library_chars :]
            self._append_content(rest.rstrip("\ufffd") if cut else rest)
        if not self._utf8.is_whole() and not self.done:
            self._deltas.report(INVALID_UTF8)

    def _flush_header(self, *, cut: bool) -> None:
        """Append the contents of a header without a message: stray text, or a call without arguments."""
        text = self._header_text(self._header or [])
        header = parse_lenient(text)
        stray = "" if cut and _UNFINISHED.fullmatch(header.stray) else header.stray
        if text.strip():
            self._deltas.report(UNFINISHED_MARKER if cut and not stray else MALFORMED_HEADER, text.strip())
        if stray or (self._function_name(header.recipient) and not cut):
            self._prime_library(_FINAL_HEADER)
            self._route(MessageHeader(header.channel, header.recipient))
            self._append(stray)
            self._parser.process(END)

    def _header_text(self, header: Sequence[int]) -> str:
        """Decode a header without the role."""
        text: str = self._encoding.decode(header)
        return _ROLE.sub("", text, count=1) if self._started else text

    def _bytes(self, token: int) -> bytes:
        return token_bytes(self._encoding, token)
