"""Tokenizer adapter: text to token ids, and incremental decoding to whole characters."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from unicodedata import normalize

from tokenizers import AddedToken, Tokenizer

from responses_app.dialects.text.budget import Budget
from responses_app.dialects.text.decoder import ByteDecoder, Decoder, PlainTokens, WindowDecoder, whole_text
from responses_app.dialects.text.length import LowerBound
from responses_app.dialects.text.pretokens import composes, preserves_all_bytes, safe_cut
from responses_app.dialects.text.slices import SLICE, slices
from responses_app.dialects.text.token_cache import TokenCache

# Marks of escaped special tokens, from the private use area, which templates leave unchanged.
_ESCAPED = re.compile("\ue0f1(\\d+)\ue0f2")
# The mark of a space in the pieces of SentencePiece, and a piece that is a byte.
_SPACE_MARK = "▁"
_BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")
# Control tokens of chat formats that many tokenizers do not declare as special.
_CONTROL_TOKEN = re.compile(r"<[|｜].+[|｜]>|</?(?:think|tools|tool_calls?|tool_responses?|arg_key|arg_value)>")


class TokenizerAdapter:
    """Thread-safe adapter of a `tokenizers` tokenizer; takes ownership. All tables are built at construction.

    `visible` are special tokens decoded as text, because a scanner searches for them.
    """

    def __init__(self, tokenizer: Tokenizer, visible: Collection[str] = ()) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder()
        self._control_tokens = [
            each.content
            for each in added.values()
            if each.special or each.content in visible or _CONTROL_TOKEN.fullmatch(each.content)
        ]
        self._escaped_ids_of = _escaped_ids(tokenizer, self._control_tokens)
        self._control_pattern = _any_of(self._control_tokens)
        self._separators = _separator_pattern(added.values()) if _is_byte_level(tokenizer) else None
        self._bytes = _byte_table(tokenizer, frozenset(added))
        self._bound = LowerBound(self._bytes) if self._bytes is not None and preserves_all_bytes(tokenizer) else None
        self._cut = safe_cut(tokenizer)
        self._composes = composes(tokenizer)
        self._added = frozenset(added)
        # Token ids are less than this number.
        self.size = max(tokenizer.get_vocab_size(with_added_tokens=True), len(self._bytes or ()), max(added, default=-1) + 1)
        self._has_pieces = _decodes_pieces(tokenizer)
        self._plain: dict[tuple[frozenset[str], frozenset[int]], PlainTokens] = {}
        self.hidden = frozenset(token for token, each in added.items() if each.special and each.content not in visible)

    def encode(self, text: str, token_cache: TokenCache | None = None, budget: Budget | None = None) -> list[int]:
        """Encode a rendered prompt: special tokens by text, except escaped ones (`escape_special`).

        The text between special tokens is encoded separately, so that `token_cache` can reuse it. Raises UnicodeEncodeError,
        and TooLong or Stopped by the budget.
        """
        text.encode()  # the tokenizer's own error does not name lone surrogates
        budget = budget or Budget()
        self._check_length(text, budget)
        ids: list[int] = []
        for index, part in enumerate(_ESCAPED.split(text)):
            if index % 2:
                words = self._ids_of_escaped(int(part))
                budget.spend(len(words))
                ids += words
            elif token_cache is None or self._separators is None:
                for group in self._groups(part):
                    ids += self._encode_text(group, budget)
            else:
                for piece in self._separators.split(part):
                    ids += self._piece(piece, token_cache, budget) if piece else ()
        return ids

    def escape_special(self, text: str) -> str:
        """Escape the special tokens of `text`, so that a client cannot forge turns.

        This covers every marker that is a single token of the model. Longer markers cannot be distinguished from text.
        """
        if self._control_pattern is None:
            return text
        return self._control_pattern.sub(
            lambda match: f"\ue0f1{self._control_tokens.index(match[0])}\ue0f2", _ESCAPED.sub("", text)
        )

    def id(self, token: str) -> int | None:
        """Return the id of a token, None for an unknown token."""
        token_id: int | None = self._tokenizer.token_to_id(token)
        return token_id

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of a token; empty for an unknown id."""
        if self._bytes is not None:
            return self._bytes[token] if 0 <= token < len(self._bytes) else b""
        return str(self._tokenizer.decode([token], skip_special_tokens=False)).encode()

    def plain_tokens(self, markers: frozenset[str], stops: frozenset[int]) -> PlainTokens:
        """Return the table of the tokens that are not in `stops` and have none of `markers`, the first characters of markers.

        All parsers with the same arguments share the table.
        """
        table = self._plain.get((markers, stops))
        if table is None:
            table = self._plain[markers, stops] = PlainTokens(partial(self._plain_text, markers, stops))
        return table

    def _plain_text(self, markers: frozenset[str], stops: frozenset[int], token: int) -> str:
        if token in stops or token in self.hidden:
            return ""
        text = self._piece_text(token) if self._bytes is None else whole_text(self.token_bytes(token))
        return "" if markers.intersection(text) else text

    def _piece_text(self, token: int) -> str:
        """Return the text of a SentencePiece token behind other text; empty for a byte, an added token and other tokenizers."""
        piece = self._tokenizer.id_to_token(token) if self._has_pieces and token not in self._added else None
        return "" if piece is None or _BYTE_PIECE.fullmatch(piece) or "\ufffd" in piece else piece.replace(_SPACE_MARK, " ")

    def decoder(self) -> Decoder:
        """Create a decoder for a generation."""
        if self._bytes is not None:
            return ByteDecoder(self._bytes, self.hidden)
        return WindowDecoder(lambda ids: str(self._tokenizer.decode(list(ids), skip_special_tokens=False)), self.hidden)

    def _check_length(self, text: str, budget: Budget) -> None:
        """Raise TooLong if the byte count alone proves that the text exceeds the budget."""
        if self._bound is None or budget.limit is None or len(text) <= budget.limit:
            return
        text = _ESCAPED.sub("", text)
        self._bound.count(normalize("NFC", text) if self._composes else text, budget.require)

    def _groups(self, text: str) -> Iterator[str]:
        """Yield parts of about SLICE characters, cut at special tokens."""
        if self._separators is None or len(text) <= SLICE:
            yield text
            return
        group: list[str] = []
        size = 0
        for piece in self._separators.split(text):
            group.append(piece)
            size += len(piece)
            if size > SLICE:
                yield "".join(group)
                group, size = [], 0
        yield "".join(group)

    def _piece(self, text: str, token_cache: TokenCache, budget: Budget) -> Sequence[int]:
        """Return the token ids of a special token, or of the text between two, counted in the budget once."""
        before = budget.spent
        ids = token_cache.tokens(text, partial(self._encode_text, text, budget))
        budget.spend(before + len(ids) - budget.spent)
        return ids

    def _encode_text(self, text: str, budget: Budget) -> list[int]:
        ids: list[int] = []
        for piece in slices(text, self._cut):
            # The fast variant computes no offsets, which take as long as all the rest.
            token_ids = self._tokenizer.encode_batch_fast([piece], add_special_tokens=False)[0].ids
            budget.spend(len(token_ids))
            ids += token_ids
        return ids

    def _ids_of_escaped(self, index: int) -> list[int]:
        return self._escaped_ids_of[index] if index < len(self._escaped_ids_of) else []


def _escaped_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return the token ids of each text, encoded as ordinary text instead of as a special token."""
    tokenizer.encode_special_tokens = True
    try:
        return [_as_text(tokenizer, text) for text in texts]
    finally:
        tokenizer.encode_special_tokens = False


def _as_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """Encode the text of a token as ordinary text; cut after the first character if the tokenizer finds the token all the same."""
    whole: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    if tokenizer.token_to_id(text) not in whole:
        return whole
    return [token for part in (text[:1], text[1:]) for token in tokenizer.encode(part, add_special_tokens=False).ids]


def _separator_pattern(added: Iterable[AddedToken]) -> re.Pattern[str] | None:
    """Return a pattern for the tokens that split a text into independently encoded parts."""
    texts = [
        each.content
        for each in added
        if each.special and not (each.normalized or each.lstrip or each.rstrip or each.single_word)
    ]
    union = _any_of(texts)
    return union and re.compile(f"({union.pattern})")


def _any_of(texts: Sequence[str]) -> re.Pattern[str] | None:
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _byte_table(tokenizer: Tokenizer, literal: frozenset[int]) -> list[bytes] | None:
    """Return the bytes of every token id, None if not byte-level. `literal` tokens are encoded as UTF-8."""
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


def _decodes_pieces(tokenizer: Tokenizer) -> bool:
    """Return whether the text of each token but the first is the piece with spaces for marks, as with SentencePiece."""
    if tokenizer.decoder is None:
        return False
    state = json.loads(tokenizer.decoder.__getstate__())
    steps = state.get("decoders", [state])
    kinds = [step.get("type") for step in steps]
    if "Strip" in kinds and "Fuse" not in kinds[: kinds.index("Strip")]:  # strips every token
        return False
    return all(map(_keeps_pieces, steps))


def _keeps_pieces(step: dict[str, Any]) -> bool:
    """Return whether a step of a decoder changes nothing behind the first token but marks of spaces and bytes."""
    kind = step.get("type")
    if kind == "Replace":
        return step.get("pattern") == {"String": _SPACE_MARK} and step.get("content") == " "
    if kind == "Metaspace":
        return step.get("replacement") == _SPACE_MARK
    return kind in ("ByteFallback", "Fuse") or (kind == "Strip" and not step.get("stop"))


def _byte_alphabet() -> dict[str, int]:
    """Return the byte-level alphabet: printable Latin-1 unchanged, remaining bytes from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    unprintable = [byte for byte in range(0x100) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + index): byte for index, byte in enumerate(unprintable)}


_BYTES = _byte_alphabet()
