"""White space buffer: white space inside of an item is text, between items a separator."""

from __future__ import annotations

import pytest

from responses_app.dialects.text.whitespace import WhitespaceBuffer


@pytest.mark.parametrize("pieces", [["a \n", "\t", " b ", ""], ["a", " ", "\n\t b", " "], ["a \n\t b "]])
def test_white_space_inside_of_an_item_is_text(pieces: list[str]) -> None:
    buffer = WhitespaceBuffer()
    assert "".join(map(buffer.feed, pieces)) == "a \n\t b"
    assert buffer.held == 1
    assert buffer.flush() == " "
    assert buffer.held == 0


def test_white_space_held_back_is_not_copied_for_each_piece() -> None:
    """Copying takes quadratic time."""
    buffer = WhitespaceBuffer()
    pieces = [" "] * 100_000
    assert "".join(map(buffer.feed, ["a", *pieces])) == "a"
    assert buffer.feed("b") == " " * 100_000 + "b"


def test_white_space_behind_a_marker_is_dropped() -> None:
    buffer = WhitespaceBuffer(bare=True)
    assert [buffer.feed("\n\n"), buffer.feed(" a"), buffer.flush()] == ["", "a", ""]
    buffer.feed("b ")
    buffer.reset()
    assert [buffer.held, buffer.feed(" c")] == [0, "c"]
