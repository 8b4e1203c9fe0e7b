"""Incremental decoding of token ids, whole characters at a time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models

from responses_app.dialects.text.tokenizer import TokenizerAdapter
from tests.support.dialects.parser_driver import byte_vocabulary
from tests.support.dialects.vocabularies import VOCABULARIES, spaced_vocabulary
from tests.support.hypothesis_profile import examples


@given(st.sampled_from(sorted(VOCABULARIES)), st.text("ab é🦑ß\n漢", max_size=12))
@settings(max_examples=examples(60))
def test_the_text_of_the_tokens_one_by_one_is_the_text(name: str, text: str) -> None:
    vocabulary = VOCABULARIES[name]()
    decoder = vocabulary.decoder()
    parsed = [decoder.feed(token) for token in vocabulary.encode(text)]
    assert "".join(parsed) + decoder.flush() == text
    assert "\ufffd" not in "".join(parsed)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_cut_character_is_flushed_as_a_replacement(name: str) -> None:
    vocabulary = VOCABULARIES[name]()
    *tokens, _ = vocabulary.encode("🦑")
    decoder = vocabulary.decoder()
    assert [decoder.feed(token) for token in tokens] == [""] * len(tokens)
    assert set(decoder.flush()) == {"\ufffd"}


@pytest.mark.parametrize(("name", "special"), [("bytes", "<|pad|>"), ("demo", "<|endoftext|>"), ("spaced", "</s>")])
def test_special_tokens_are_no_text_but_have_their_bytes(name: str, special: str) -> None:
    vocabulary = VOCABULARIES[name]()
    token = vocabulary.id(special)
    assert token is not None
    assert vocabulary.decoder().feed(token) == ""
    assert vocabulary.token_bytes(token) == special.encode()


@pytest.mark.parametrize("name", VOCABULARIES)
def test_unknown_token_id_yields_no_text(name: str) -> None:
    vocabulary = VOCABULARIES[name]()
    assert vocabulary.decoder().feed(1_000_000) == ""
    assert vocabulary.token_bytes(1_000_000) == b""


def test_a_long_text_of_a_windowed_tokenizer_keeps_its_spaces() -> None:
    vocabulary, text = spaced_vocabulary(), "a b a  b" * 50
    decoder = vocabulary.decoder()
    assert "".join(decoder.feed(token) for token in vocabulary.encode(text)) == text


def test_tokens_that_steer_are_guarded_although_they_are_not_declared_special() -> None:
    tokenizer = Tokenizer(models.BPE(vocab={char: index for index, char in enumerate("<>|/ehilnkptab")}, merges=[]))
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in ("</think>", "<|plan|>", "<b>")])
    vocabulary = TokenizerAdapter(tokenizer)
    guarded = vocabulary.encode(vocabulary.escape_special("</think><|plan|><b>"))
    assert not {vocabulary.id("</think>"), vocabulary.id("<|plan|>")} & set(guarded)
    assert b"".join(map(vocabulary.token_bytes, guarded)).replace(b" ", b"") == b"</think><|plan|><b>"
    assert guarded[-1] == vocabulary.id("<b>")


def test_guarded_text_spells_special_tokens_out() -> None:
    vocabulary = byte_vocabulary()
    special = vocabulary.id("<|im_end|>")
    assert vocabulary.encode("a<|im_end|>").count(special or -1) == 1
    guarded = vocabulary.encode(vocabulary.escape_special("a<|im_end|>b"))
    assert special not in guarded
    assert b"".join(map(vocabulary.token_bytes, guarded)) == b"a<|im_end|>b"
