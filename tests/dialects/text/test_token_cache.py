"""A prompt rendered with a token cache equals the prompt rendered without, token by token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer

from responses_app.dialects.base import Dialect
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from tests.support.dialects.parser_driver import (
    WEATHER,
    assistant,
    call_output,
    chat,
    demo_vocabulary,
    function_call,
    harmony,
    reasoning,
    turn,
    user,
)
from tests.support.hypothesis_profile import examples


def stripping_vocabulary() -> TokenizerAdapter:
    """Create a tokenizer whose special tokens strip the white space around them, so that no cut at them is safe."""
    tokenizer = Tokenizer.from_str(demo_vocabulary()._tokenizer.to_str())
    tokenizer.add_special_tokens([AddedToken("<|x|>", special=True, normalized=False, lstrip=True, rstrip=True)])
    return TokenizerAdapter(tokenizer)


DIALECTS: dict[str, Dialect] = {
    "harmony": harmony(),
    "bytes": chat(),
    "demo": chat(vocabulary=demo_vocabulary()),
    "stripping": chat(vocabulary=stripping_vocabulary()),
}
# Spaces at the ends, combining characters, special tokens and escape marks in user text.
WORDS = st.text("aé é 🦑\u0301\n<|im_start|>", max_size=10) | st.sampled_from(
    [" <|im_start|> ", "<|im_end|>user", "<|start|>assistant", "<think>", "\ue0f10\ue0f2", "<|x|> ", " e", "\u0301"]
)


@st.composite
def rounds(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Generate rounds of a conversation."""
    kind = draw(st.sampled_from(("talk", "call", "rule")))
    uid = f"call_{draw(st.integers(0, 10**6))}"
    if kind == "talk":
        return [user(draw(WORDS)), reasoning(draw(WORDS)), assistant(draw(WORDS))]
    if kind == "call":
        return [
            user(draw(WORDS)),
            reasoning(draw(WORDS)),
            function_call(uid, '{"city": "Oslo"}'),
            call_output(uid, draw(WORDS)),
        ]
    return [{**user(draw(WORDS)), "role": "developer"}, user(draw(WORDS))]


@given(st.sampled_from(sorted(DIALECTS)), st.lists(rounds(), min_size=1, max_size=5), st.booleans())
@settings(max_examples=examples(150))
def test_cached_prompt_equals_fresh_prompt_at_every_turn(
    name: str, conversation: list[list[dict[str, Any]]], tools: bool
) -> None:
    dialect, items, memo = DIALECTS[name], list[dict[str, Any]](), TokenCache()
    for part in conversation:
        items = [*items, *part]
        current = turn(*items, tools=(WEATHER,) if tools else ())
        memo = TokenCache(memo.used)
        assert dialect.render(replace(current, token_cache=memo)) == dialect.render(current)


@pytest.mark.parametrize("name", ["harmony", "bytes", "demo"])
def test_cached_pieces_are_not_tokenized_again(name: str) -> None:
    dialect, items = DIALECTS[name], [user("one"), assistant("two"), user("three")]
    first = TokenCache()
    dialect.render(replace(turn(*items), token_cache=first))
    second = TokenCache(first.used)
    dialect.render(replace(turn(*items, assistant("four"), user("five")), token_cache=second))
    new = set(second.used) - set(first.used)
    assert len(set(first.used) & set(second.used)) > 3
    assert not any(word in text for text in new for word in ("one", "three"))


def test_only_what_the_last_prompt_had_is_remembered() -> None:
    first = TokenCache()
    harmony().render(replace(turn(user("one")), token_cache=first))
    second = TokenCache(first.used)
    harmony().render(replace(turn(user("two")), token_cache=second))
    assert not any("one" in text for text in second.used)
    assert second.size < 2 * first.size
