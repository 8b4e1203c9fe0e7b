"""Plain tokens: text without a look at the tokens before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.text.decoder import PlainTokens, whole_text
from tests.support.dialects.parser_driver import demo_vocabulary
from tests.support.dialects.vocabularies import VOCABULARIES, spaced_vocabulary


def test_a_token_is_looked_up_once() -> None:
    asked: list[int] = []
    table = PlainTokens(lambda token: asked.append(token) or "ab"[token])  # type: ignore[func-returns-value]
    assert [table.text([0, 1, 0]), table.text([1]), asked] == ["aba", "b", [0, 1]]


def test_a_group_with_another_token_is_not_plain() -> None:
    table = PlainTokens("a ".strip().__mul__)
    assert table.text([1, 0]) == table.text([0]) == table.text([]) == ""


def test_parts_of_characters_are_not_plain() -> None:
    whole = [whole_text("é".encode()), whole_text("é".encode()[:1]), whole_text(b"a\xff"), whole_text("\ufffd".encode())]
    assert whole == ["é", "", "", ""]


def test_markers_and_stop_tokens_are_not_plain() -> None:
    vocabulary = demo_vocabulary()
    (word,), stop, marker = vocabulary.encode("the"), vocabulary.id("<|im_end|>"), vocabulary.id("<think>")
    assert stop is not None and marker is not None  # noqa: PT018
    table = vocabulary.plain_tokens(frozenset("<"), frozenset([stop]))
    assert [table[word], table[stop], table[marker]] == ["the", "", ""]
    assert vocabulary.plain_tokens(frozenset("<h"), frozenset([stop]))[word] == ""
    assert vocabulary.plain_tokens(frozenset(), frozenset([word]))[word] == ""


@pytest.mark.parametrize("name", VOCABULARIES)
@given(st.data())
def test_the_text_of_plain_tokens_is_that_of_the_decoder(name: str, data: st.DataObject) -> None:
    vocabulary = VOCABULARIES[name]()
    pieces = st.text("ab é🦑ß\n漢", max_size=12).map(vocabulary.encode) | st.lists(st.integers(0, 260))
    tokens = data.draw(pieces)
    table, decoder = vocabulary.plain_tokens(frozenset(), frozenset()), vocabulary.decoder()
    for token in tokens:
        is_plain = decoder.is_between_chars and table[token]
        text = decoder.feed(token)
        assert not is_plain or table[token] == text


@pytest.mark.parametrize("name", VOCABULARIES)
@given(st.text("ab é🦑ß\n漢", min_size=1, max_size=12))
def test_plain_tokens_may_pass_the_decoder_by(name: str, text: str) -> None:
    vocabulary = VOCABULARIES[name]()
    table, decoder, parsed = vocabulary.plain_tokens(frozenset(), frozenset()), vocabulary.decoder(), ""
    for token in vocabulary.encode(text):
        parsed += (table[token] if decoder.is_between_chars else "") or decoder.feed(token)
    assert parsed + decoder.flush() == text


def test_pieces_of_words_are_plain() -> None:
    vocabulary = spaced_vocabulary()
    table = vocabulary.plain_tokens(frozenset(), frozenset())
    ids = [vocabulary.id(piece) for piece in ("▁a", "<0x41>", "</s>", "é")]
    assert [table[token] for token in ids if token is not None] == [" a", "", "", "é"]
