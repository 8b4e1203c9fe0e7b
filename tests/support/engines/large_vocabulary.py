"""Byte-level BPE vocabulary of 100,000 tokens in many scripts: some tokens are parts of characters, others end one and begin the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, product
from typing import Any

SIZE = 100_000
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
PLAIN = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
# The pattern of Qwen's tokenizers: words with a leading space, single digits, runs of punctuation and of white space.
PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# Latin, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, punctuation, kana, Chinese characters, Hangul, emoji.
SCRIPTS = (
    *(range(0xA1, 0x250), range(0x370, 0x400), range(0x400, 0x530), range(0x5D0, 0x5EB), range(0x620, 0x6D0)),
    *(range(0x904, 0x970), range(0xE01, 0xE5C), range(0x2010, 0x2030), range(0x3041, 0x3100), range(0x4E00, 0x9FA6)),
    *(range(0xAC00, 0xD7A4), range(0x1F300, 0x1F650), range(0x1F680, 0x1F700), range(0x1F900, 0x1FA00)),
)
CONSONANTS, VOWELS = "bcdfghjklmnprstvwyz", "aeiou"
PUNCTUATION = (
    '{"',
    '"}',
    '":',
    '",',
    '":"',
    '","',
    '"},{"',
    "[{",
    "}]",
    '"]',
    "[]",
    "{}",
    "://",
    "...",
    "--",
    "==",
    "\n\n",
    "  ",
)
Merge = tuple[bytes, bytes]


def tokenizer(size: int = SIZE) -> Any:
    """Create the tokenizer: `size` tokens, then SPECIAL and PLAIN."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = bytes_to_unicode()
    vocabulary = {letters[byte]: byte for byte in range(256)}
    merges = []
    for first, second in merged_pairs(size - 256):
        left, right = ("".join(letters[byte] for byte in part) for part in (first, second))
        vocabulary[left + right] = len(vocabulary)
        merges.append((left, right))
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    inner.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(PATTERN), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    inner.add_tokens([AddedToken(text, special=False, normalized=False) for text in PLAIN])
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>")


def merged_pairs(count: int) -> list[Merge]:
    """Return `count` merges of distinct results, in an order in which both parts of a merge exist before it."""
    merges: dict[bytes, Merge] = {}
    for merge in islice(_candidates(), 4 * count):
        if len(merges) == count:
            break
        merges.setdefault(b"".join(merge), merge)
    assert len(merges) == count, len(merges)
    return list(merges.values())


def _candidates() -> Iterator[Merge]:
    yield from chain.from_iterable(_steps(sign.encode()) for sign in PUNCTUATION)
    yield from chain.from_iterable(map(_of_character, chain.from_iterable(SCRIPTS)))
    yield from _across_characters()
    yield from _words()
    yield from _pairs_of_characters()


def _steps(text: bytes) -> Iterator[Merge]:
    """Yield merges that build `text` byte by byte."""
    for end in range(1, len(text)):
        yield text[:end], text[end : end + 1]


def _of_character(number: int) -> Iterator[Merge]:
    """Yield the merges of a character. A third of the characters, and three quarters of the emoji, stay cut before the last byte."""
    text = chr(number).encode()
    is_whole = number % 4 == 0 if len(text) == 4 else number % 3 > 0
    return islice(_steps(text), len(text) - 1 if is_whole or len(text) == 2 else len(text) - 2)


def _prefixes(script: Iterable[int], length: int) -> list[bytes]:
    return sorted({chr(number).encode()[:length] for number in script})


def _across_characters() -> Iterator[Merge]:
    """Yield merges of the last byte of a character that is cut with the first bytes of the next character."""
    beginnings = [*_prefixes(range(0x4E00, 0x9FA6), 2)[::4], *_prefixes(range(0xAC00, 0xD7A4), 2)[::8]]
    beginnings += _prefixes(range(0x1F300, 0x1F650), 3)
    yield from product([bytes([byte]) for byte in range(0x80, 0xC0)], beginnings)
    yield from ((b" ", beginning) for beginning in beginnings)


def _words() -> Iterator[Merge]:
    """Yield merges of syllables and words of two and three syllables, with and without a leading space."""
    syllables = [(consonant + vowel).encode() for consonant, vowel in product(CONSONANTS, VOWELS)]
    yield from ((syllable[:1], syllable[1:]) for syllable in syllables)
    yield from ((b" ", syllable) for syllable in syllables)
    for first, second in product(syllables, syllables):
        yield first, second
        yield b" " + first, second
    for first, second, third in product(syllables[::2], syllables[1::3], syllables[::5]):
        yield first + second, third
        yield b" " + first + second, third


def _pairs_of_characters() -> Iterator[Merge]:
    """Yield merges of two Chinese characters, each a token."""
    whole = [chr(number).encode() for number in range(0x4E00, 0x9FA6) if number % 3]
    for step in (1, 7, 61):
        yield from zip(whole, whole[step:], strict=False)
