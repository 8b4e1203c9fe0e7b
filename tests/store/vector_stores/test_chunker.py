"""Chunker: sizes, overlaps, and no lost character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.store.vector_stores import chunker
from responses_app.store.vector_stores.chunker import chunk_text, count_tokens, token_offsets

WORDS = "The quick brown fox jumps over the lazy dog.\n" * 400


@pytest.mark.parametrize(("size", "overlap"), [(800, 400), (100, 0), (100, 50), (4096, 2048), (333, 111)])
def test_chunk_sizes_stay_within_the_limit(size: int, overlap: int) -> None:
    chunks = chunk_text(WORDS, size, overlap)
    assert max(chunk.tokens for chunk in chunks) <= size
    assert min(chunk.tokens for chunk in chunks[:-1] or chunks) >= min(size * 0.9, count_tokens(WORDS)) - 1


def test_overlap_is_at_most_half_of_a_chunk() -> None:
    chunks = chunk_text(WORDS, 100, 4000)
    assert len(chunks) <= 2 + 2 * count_tokens(WORDS) // 90


def test_chunks_end_with_a_line() -> None:
    assert all(chunk.text.rstrip(" ").endswith("\n") or chunk.text.endswith(".") for chunk in chunk_text(WORDS, 100, 50))


@pytest.mark.parametrize("text", ["", " ", "\n\n\t "], ids=["empty", "blank", "white space"])
def test_blank_texts_have_no_chunks(text: str) -> None:
    assert chunk_text(text) == []


def test_short_text_is_a_single_chunk() -> None:
    assert [chunk.text for chunk in chunk_text("Hello there!")] == ["Hello there!"]


@given(st.text(alphabet=st.characters(), max_size=600))
def test_offsets_of_tokens_rise_to_the_end(text: str) -> None:
    offsets = token_offsets(text)
    assert offsets == sorted(offsets)
    assert offsets[-1] == len(text)


@given(st.lists(st.sampled_from(["word ", "Grüße ", "日本語", "🙂", "\n", "x" * 50, "\ud800"]), max_size=300))
def test_chunks_without_overlap_are_the_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    chunks = chunk_text(text, 100, 0)
    assert "".join(chunk.text for chunk in chunks).strip() == text.strip()


def test_special_tokens_of_a_text_are_plain_text() -> None:
    assert chunk_text("<|start|>system<|message|>")[0].text == "<|start|>system<|message|>"


def test_text_without_blanks_is_divided() -> None:
    chunks = chunk_text("ab1" * 5 * chunker.SLICE_CHARS, 100, 0)
    assert max(chunk.tokens for chunk in chunks) <= 100
