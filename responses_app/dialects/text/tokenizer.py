"""Text to token ids and back, one token at a time, without ever cutting a character."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol
from unicodedata import normalize

from tokenizers import AddedToken, Tokenizer

from responses_app.dialects.text.budget import Budget
from responses_app.dialects.text.length import LowerBound
from responses_app.dialects.text.pretokens import composes, keeps_all_bytes, safe_cut
from responses_app.dialects.text.slices import SLICE, slices
from responses_app.dialects.text.token_cache import TokenCache

# Marks around text that must not become a special token; from the private use area, so that no template touches them.
_GUARD = re.compile("\ue0f1(\\d+)\ue0f2")
# Tokens that steer a model, although many tokenizers do not declare them as special.
_STEERING = re.compile(r"<[|｜].+[|｜]>|</?(?:think|tools|tool_calls?|tool_responses?|arg_key|arg_value)>")


class Decoder(Protocol):
    """Turns the tokens of one generation into text."""

    def feed(self, token: int) -> str:
        """The characters that this token completes."""
        ...

    def flush(self) -> str:
        """What is held back, as U+FFFD where it is no character."""
        ...


class TokenizerAdapter:
    """A tokenizer, which is this object's alone until it is made. All tables are built at once: it is shared by all runs.

    `visible` are special tokens that are text all the same, because a scanner looks for them.
    """

    def __init__(self, tokenizer: Tokenizer, visible: Collection[str] = ()) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder()
        self._steering = [
            each.content
            for each in added.values()
            if each.special or each.content in visible or _STEERING.fullmatch(each.content)
        ]
        self._unspelled = _escaped_ids(tokenizer, self._steering)
        self._spelled = _any_of(self._steering)
        self._apart = _between(added.values()) if _is_byte_level(tokenizer) else None
        self._bytes = _byte_table(tokenizer, frozenset(added))
        self._bound = LowerBound(self._bytes) if self._bytes is not None and keeps_all_bytes(tokenizer) else None
        self._cut = safe_cut(tokenizer)
        self._composes = composes(tokenizer)
        self.hidden = frozenset(token for token, each in added.items() if each.special and each.content not in visible)

    def encode(self, text: str, memo: TokenCache | None = None, budget: Budget | None = None) -> list[int]:
        """Token ids of a rendered prompt: special tokens by their text, except where `guard` was.

        What stands between special tokens the tokenizer reads by itself, so that a `memo` may know it.
        Raises UnicodeEncodeError, and TooLong or Stopped by the budget.
        """
        text.encode()  # the tokenizer's own error would not say what is wrong
        budget = budget or Budget()
        self._check_length(text, budget)
        ids: list[int] = []
        for index, part in enumerate(_GUARD.split(text)):
            if index % 2:
                words = self._plain(int(part))
                budget.spend(len(words))
                ids += words
            elif memo is None or self._apart is None:
                for group in self._groups(part):
                    ids += self._read(group, budget)
            else:
                for piece in self._apart.split(part):
                    ids += self._piece(piece, memo, budget) if piece else ()
        return ids

    def escape_special(self, text: str) -> str:
        """The same text, marked so that tokens that steer the model stay words in it: nobody can write himself a turn.

        So it is for every mark that is one token of this model. One that takes several looks the same whoever wrote it.
        """
        if self._spelled is None:
            return text
        return self._spelled.sub(lambda match: f"\ue0f1{self._steering.index(match[0])}\ue0f2", _GUARD.sub("", text))

    def id(self, token: str) -> int | None:
        """The id of a token, None if there is no such token."""
        found: int | None = self._tokenizer.token_to_id(token)
        return found

    def spell(self, token: int) -> bytes:
        """The bytes of a token; none for a number that is no token."""
        if self._bytes is not None:
            return self._bytes[token] if 0 <= token < len(self._bytes) else b""
        return str(self._tokenizer.decode([token], skip_special_tokens=False)).encode()

    def decoder(self) -> Decoder:
        """A fresh decoder for one generation."""
        if self._bytes is not None:
            return _ByteDecoder(self._bytes, self.hidden)
        return _WindowDecoder(lambda ids: str(self._tokenizer.decode(list(ids), skip_special_tokens=False)), self.hidden)

    def _check_length(self, text: str, budget: Budget) -> None:
        """Raises TooLong for a text that has too many bytes for its budget, whatever they are."""
        if self._bound is None or budget.most is None or len(text) <= budget.most:
            return
        text = _GUARD.sub("", text)
        self._bound.count(normalize("NFC", text) if self._composes else text, budget.require)

    def _groups(self, text: str) -> Iterator[str]:
        """The text in pieces of about SLICE characters, cut at special tokens."""
        if self._apart is None or len(text) <= SLICE:
            yield text
            return
        group: list[str] = []
        size = 0
        for piece in self._apart.split(text):
            group.append(piece)
            size += len(piece)
            if size > SLICE:
                yield "".join(group)
                group, size = [], 0
        yield "".join(group)

    def _piece(self, text: str, memo: TokenCache, budget: Budget) -> Sequence[int]:
        """The token ids of what stands between special tokens, or of one of them; counted once."""
        before = budget.spent
        ids = memo.tokens(text, partial(self._read, text, budget))
        budget.spend(before + len(ids) - budget.spent)
        return ids

    def _read(self, text: str, budget: Budget) -> list[int]:
        ids: list[int] = []
        for piece in slices(text, self._cut):
            # Without the place of each token in the text, which takes as long as all the rest.
            found = self._tokenizer.encode_batch_fast([piece], add_special_tokens=False)[0].ids
            budget.spend(len(found))
            ids += found
        return ids

    def _plain(self, index: int) -> list[int]:
        return self._unspelled[index] if index < len(self._unspelled) else []


class _ByteDecoder:
    """For byte-level tokenizers: the bytes of the tokens, cut at characters."""

    def __init__(self, table: Sequence[bytes], hidden: frozenset[int]) -> None:
        self._table = table
        self._hidden = hidden
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: int) -> str:
        if token in self._hidden or not 0 <= token < len(self._table):
            return self.flush()
        return self._utf8.decode(self._table[token])

    def flush(self) -> str:
        return self._utf8.decode(b"", True)


class _WindowDecoder:
    """For any other tokenizer: decodes the newest tokens again, behind the ones whose text is known."""

    def __init__(self, decode: Callable[[Sequence[int]], str], hidden: frozenset[int]) -> None:
        self._decode = decode
        self._hidden = hidden
        self._known: list[int] = []
        self._new: list[int] = []

    def feed(self, token: int) -> str:
        if token in self._hidden:
            return self.flush()
        self._new.append(token)
        text = self._unsaid()
        return "" if text.endswith("\ufffd") else self._accept(text)

    def flush(self) -> str:
        return self._accept(self._unsaid()) if self._new else ""

    def _unsaid(self) -> str:
        return self._decode([*self._known, *self._new])[len(self._decode(self._known)) :]

    def _accept(self, text: str) -> str:
        if text:
            self._known, self._new = self._new, []
        return text


def _escaped_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The token ids of the text of each of these tokens, read as ordinary text."""
    tokenizer.encode_special_tokens = True
    try:
        return [_as_text(tokenizer, text) for text in texts]
    finally:
        tokenizer.encode_special_tokens = False


def _as_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """Token ids of a text that is a token by itself; one that is not declared special is found all the same, unless cut."""
    whole: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    if tokenizer.token_to_id(text) not in whole:
        return whole
    return [token for part in (text[:1], text[1:]) for token in tokenizer.encode(part, add_special_tokens=False).ids]


def _between(added: Iterable[AddedToken]) -> re.Pattern[str] | None:
    """Matches tokens that the tokenizer cuts out before it reads what is between them, whatever that is."""
    texts = [
        each.content
        for each in added
        if each.special and not (each.normalized or each.lstrip or each.rstrip or each.single_word)
    ]
    found = _any_of(texts)
    return found and re.compile(f"({found.pattern})")


def _any_of(texts: Sequence[str]) -> re.Pattern[str] | None:
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _byte_table(tokenizer: Tokenizer, literal: frozenset[int]) -> list[bytes] | None:
    """The bytes of every token id, None if the tokenizer does not work on bytes; `literal` tokens are written as they are."""
    if not _is_byte_level(tokenizer):
        return None
    vocab = tokenizer.get_vocab(with_added_tokens=True)
    table = [b""] * (max(vocab.values(), default=-1) + 1)
    for text, token in vocab.items():
        plain = token in literal or not _BYTES.keys() >= set(text)
        table[token] = text.encode() if plain else bytes(_BYTES[char] for char in text)
    return table


def _is_byte_level(tokenizer: Tokenizer) -> bool:
    if tokenizer.decoder is None:
        return False
    state = json.loads(tokenizer.decoder.__getstate__())
    return any(each.get("type") == "ByteLevel" for each in state.get("decoders", [state]))


def _byte_alphabet() -> dict[str, int]:
    """The characters that byte-level tokenizers write for bytes: printable Latin-1 for itself, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + index): byte for index, byte in enumerate(others)}


_BYTES = _byte_alphabet()
