"""Hears the tokens of one harmony generation, whatever their shape, and says pieces."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from openai_harmony import HarmonyEncoding, HarmonyError, StreamableParser

from responses_app.dialects.harmony.header import MessageHeader, parse_lenient, well_formed
from responses_app.dialects.text.delta_buffer import ARGUMENTS, COMMENTARY, FINAL, REASONING, DeltaBuffer, TextChannel
from responses_app.dialects.text.json_tracker import JsonTracker
from responses_app.dialects.text.logprobs import to_wire
from responses_app.dialects.tools.selection import Toolset
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Call, Delta, Json

RETURN, CONSTRAIN, CHANNEL, START, END, MESSAGE, CALL, END_OF_TEXT = (
    200002, 200003, 200005, 200006, 200007, 200008, 200012, 199999,
)  # fmt: skip
STOPS = frozenset({RETURN, CALL, END_OF_TEXT})
ASSISTANT = 173781
FIRST_SPECIAL = 199998
# A name has at most 128 characters; a header longer than this is text of a model that forgot the header.
MAX_HEADER = 160

# Where the text of a message belongs, by its channel; any other channel is read as final.
CHANNELS: dict[str | None, TextChannel] = {"analysis": REASONING, "commentary": COMMENTARY, "final": FINAL}


_PLAIN = (CHANNEL, 17196)  # <|channel|>final
_ROLE = re.compile(r"\s*(?:assistant|user|system|developer|tool|functions\.[\w\-]+)")
_UNFINISHED = re.compile(r"to?=?|assist\w*")


def bytes_of(encoding: HarmonyEncoding, token: int) -> bytes:
    """The bytes of a token; none for a number that is no token."""
    try:
        return bytes(encoding._inner.decode_bytes([token]))
    except HarmonyError:
        return b""


class HarmonyParser:
    """Follows the frame of the messages by their special tokens; the harmony library's parser reads headers and text.

    The parser hears one token at a time, so it does not matter how tokens are grouped (E1-E4). Special tokens are no text
    but where a grammar binds the model to JSON, inside its strings: a grammar matches them by their spelling, so the JSON
    goes on behind them, and no message could end there. What stands where nothing should stand, be it behind the arguments
    of a call, and headers without a message are said as text, never raised (F4). With `one_call` everything behind the first
    complete call is hidden; with `bound` the final text is JSON as the arguments of declared tools are.
    """

    def __init__(self, encoding: HarmonyEncoding, tools: Toolset, *, one_call: bool = False, bound: bool = False) -> None:
        self.reasoning_tokens = 0
        self.done = False
        self._encoding = encoding
        self._tools = tools
        self._one_call = one_call
        self._bound = bound
        self._names = frozenset(str(tool["name"]) for tool in tools.offered)
        self._speech = DeltaBuffer()
        self._parser = StreamableParser(encoding, None)
        self._header: list[int] | None = []  # None while a message is open
        self._started = False  # the header follows a <|start|>, so it begins with a role
        self._voice: TextChannel = FINAL
        self._quotes: JsonTracker | None = None  # follows a message that a grammar binds to JSON
        self._white: str | None = ""  # held back: a message of nothing but white space is none (A7)
        self._said = 0  # characters that the parser gave out in this message
        self._unsure = False  # the parser may hold bytes back
        self._logprobs: list[Json] = []

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Pieces that these tokens complete."""
        for index, token in enumerate(chunk.tokens):
            if self.done:
                break
            self._hear(token, chunk.logprobs[index] if index < len(chunk.logprobs) else None)
        return self._speech.take()

    def finish(self) -> list[Delta]:
        """Whatever was held back; half a character at the cut was never said."""
        if self.done:
            return []
        if self._header is not None:
            self._flush_header(cut=True)
        else:
            self._rest(cut=True)
        return self._speech.take()

    def _hear(self, token: int, logprob: Logprob | None) -> None:
        if token >= FIRST_SPECIAL and self._quoted(token):
            self._spelled(token, logprob)
        elif token >= FIRST_SPECIAL:
            frame = self._FRAME.get(token)
            if frame is not None:
                frame(self, token)
        elif self._header is None:
            self._content(token, logprob)
        else:
            self._header.append(token)
            if len(self._header) > MAX_HEADER:
                self._open()

    def _quoted(self, token: int) -> bool:
        """Whether this special token stands inside a string; those that stop the engine are never allowed there."""
        return self._header is None and self._quotes is not None and self._quotes.in_string and token not in STOPS

    def _spelled(self, token: int, logprob: Logprob | None) -> None:
        """Say it as text. The parser knows nothing of it: to it the message would be over."""
        self._heard(logprob)
        self._say(self._bytes(token).decode(errors="replace"))

    # The frame of the messages

    def _on_start(self, _token: int) -> None:
        self._end_message()
        self._started = True

    def _on_channel(self, token: int) -> None:
        header = self._header
        if header is None or parse_lenient(self._spell(header)).stray:
            self._end_message()
            header = self._header = []
        header.append(token)

    def _on_constrain(self, token: int) -> None:
        if self._header is not None:
            self._header.append(token)

    def _on_message(self, _token: int) -> None:
        if self._header is not None:
            self._open()

    def _on_closer(self, _token: int) -> None:
        self._end_message()

    _FRAME: ClassVar[dict[int, Callable[[HarmonyParser, int], None]]] = {
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

    def _open(self) -> None:
        """The header is over; what follows is the text of its message."""
        header, self._header = self._header or [], None
        text = self._spell(header)
        if well_formed(text) and self._prime(header):
            self._address(MessageHeader(self._parser.current_channel, self._parser.current_recipient))
        else:
            self._prime(_PLAIN)
            self._address(parse_lenient(text))

    def _prime(self, header: Sequence[int]) -> bool:
        """Have the parser read a header. False if it could not: then a new one takes its place."""
        try:
            for token in (START, ASSISTANT, *header, MESSAGE):
                self._parser.process(token)
        except HarmonyError:
            self._parser = StreamableParser(self._encoding, None)
            return False
        return True

    def _address(self, header: MessageHeader) -> None:
        """Choose the voice of the message that begins, and say what strayed into its header."""
        self._white, self._said, self._unsure, self._logprobs, self._quotes = "", 0, False, [], None
        name = self._callee(header.recipient)
        if name is None:
            self._voice = CHANNELS.get(header.channel, FINAL)
            self._quotes = JsonTracker() if self._bound and self._voice is FINAL else None
        elif not self._tools.allows(name):
            self._voice = COMMENTARY
        else:
            self._call(name, header)
            return
        self._say(header.stray)

    def _call(self, name: str, header: MessageHeader) -> None:
        self._speech.say(COMMENTARY, header.stray)
        self._speech.end()
        self._speech.add(Call(name))
        self._voice, self._quotes = ARGUMENTS, JsonTracker() if name in self._names else None

    def _callee(self, recipient: str | None) -> str | None:
        """The function that a recipient names; None for persons, formats and tools that nobody declared."""
        if recipient in self._names:
            return recipient
        if recipient is None or not recipient.startswith("functions."):
            return None
        return recipient.removeprefix("functions.") or None

    def _content(self, token: int, logprob: Logprob | None) -> None:
        self._heard(logprob)
        self._parser.process(token)
        delta = self._parser.last_content_delta or ""
        self._unsure = not delta or "\ufffd" in delta
        if delta:
            self._said += len(delta)
            self._say_on(delta)

    def _heard(self, logprob: Logprob | None) -> None:
        if self._voice is REASONING:
            self.reasoning_tokens += 1
        elif logprob is not None and self._voice is not ARGUMENTS:
            self._logprobs.append(to_wire(logprob, self._bytes))

    def _say_on(self, text: str) -> None:
        """Say text of the open message. A call is complete with its object: what follows that is text that forgot its header."""
        own = self._quotes.read(text) if self._quotes is not None else len(text)
        self._say(text[:own])
        behind = text[own:]
        if behind.strip() and self._voice is ARGUMENTS:
            self.done = self._one_call
            self._speech.end()
            self._voice, self._quotes, self._white = COMMENTARY, None, ""
        if not self.done:
            self._say(behind)

    def _say(self, text: str) -> None:
        """Say text of the open message; white space at its start waits for the first word (A7)."""
        if self._white is not None and self._voice is not ARGUMENTS:
            if not text or text.isspace():
                self._white += text
                return
            text, self._white = self._white + text, None
        logprobs, self._logprobs = self._logprobs, []
        self._speech.say(self._voice, text, logprobs)

    def _end_message(self) -> None:
        """The open message, or a header that never got one, is complete."""
        if self._header is None:
            self._rest(cut=False)
        else:
            self._flush_header(cut=False)
        self._speech.end()
        self.done = self.done or (self._one_call and self._voice is ARGUMENTS)
        self._header, self._started, self._voice = [], False, FINAL

    def _rest(self, *, cut: bool) -> None:
        """Say what the parser still holds: broken UTF-8 at the end of a message becomes U+FFFD, at a cut it is left out."""
        self._parser.process(END)
        if self._unsure:
            message = "".join(part.text for part in self._parser.messages[-1].content)
            rest = message[self._said :]
            self._say_on(rest.rstrip("\ufffd") if cut else rest)

    def _flush_header(self, *, cut: bool) -> None:
        """Say what a header without a message holds: its words, or a call without arguments."""
        header = parse_lenient(self._spell(self._header or []))
        stray = "" if cut and _UNFINISHED.fullmatch(header.stray) else header.stray
        if stray or (self._callee(header.recipient) and not cut):
            self._prime(_PLAIN)
            self._address(MessageHeader(header.channel, header.recipient))
            self._say(stray)
            self._parser.process(END)

    def _spell(self, header: Sequence[int]) -> str:
        """The text of a header without its role."""
        text: str = self._encoding.decode(header)
        return _ROLE.sub("", text, count=1) if self._started else text

    def _bytes(self, token: int) -> bytes:
        return bytes_of(self._encoding, token)
