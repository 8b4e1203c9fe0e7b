"""Plain tokens: text without a look at the tokens before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.text.decoder import PlainTokens, whole_text
from tests.support.dialects.parser_driver import byte_vocabulary, demo_vocabulary


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


@given(st.text("ab é🦑ß\n漢", max_size=12))
def test_the_text_of_plain_tokens_is_that_of_the_decoder(text: str) -> None:
    for vocabulary in (byte_vocabulary(), demo_vocabulary()):
        table, decoder = vocabulary.plain_tokens(frozenset(), frozenset()), vocabulary.decoder()
        for token in vocabulary.encode(text):
            is_between = not decoder.has_rest
            text = decoder.feed(token)
            assert not (is_between and table[token]) or table[token] == text
