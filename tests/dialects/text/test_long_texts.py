"""Long texts: sliced without changing tokens, bounded by their bytes, rejected before tokenization."""

from __future__ import annotations

import json
import time
from functools import cache
from itertools import islice
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_harmony import Conversation, DeveloperContent, Message, RenderConversationConfig, Role, ToolDescription
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import Regex as HubRegex

from responses_app.dialects.harmony.text import harmony_text
from responses_app.dialects.text.budget import Budget, Stopped, TooLong
from responses_app.dialects.text.length import LowerBound
from responses_app.dialects.text.pretokens import KNOWN_PATTERNS, preserves_all_bytes, safe_cut
from responses_app.dialects.text.slices import CUT, CUT_ANYWHERE, slices
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from tests.support.dialects.parser_driver import WEATHER, chat, demo_vocabulary, harmony, turn, user
from tests.support.hypothesis_profile import examples

pytestmark = pytest.mark.slow

PIECES = [
    *("a", "B", "zZ", "é", "e\u0301", "ß", "ǅ", "中文", "한", "ก", "٣", "7", "123", "word", "DNA"),
    *(" ", "  ", "\n", "\r\n", "\t", "\u3000", "\u00a0", "\u2028", "\u0301", "\u200b"),
    *("'s", "'LL", "'", "!", "//", "/", "_", "-", "…", "。", ",", ".", "=", "(", ")", "🦑", "\x00", "\x1c"),
    *("<|end|>", "<|im_start|>", "<think>", "</s>"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@cache
def known(pattern: str, normalizer: bool) -> Tokenizer:
    """Create a tokenizer with the merges of demo-chat and the given pattern."""
    model = json.loads(demo_vocabulary()._tokenizer.to_str())["model"]
    tokenizer = Tokenizer(models.BPE(model["vocab"], [tuple(merge) for merge in model["merges"]]))
    steps = [
        pre_tokenizers.Split(HubRegex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens([AddedToken("<|im_start|>", special=True, normalized=False)])
    return tokenizer


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    token_ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return token_ids


@given(st.sampled_from(sorted(KNOWN_PATTERNS)), st.booleans(), TEXTS, st.integers(1, 12))
@settings(max_examples=examples(1500))
@pytest.mark.slow
def test_slices_have_the_tokens_of_the_whole(pattern: str, normalizer: bool, text: str, size: int) -> None:
    tokenizer = known(pattern, normalizer)
    assert safe_cut(tokenizer) is CUT
    pieces = list(slices(text, CUT, size))
    assert "".join(pieces) == text
    assert [token for piece in pieces for token in ids(tokenizer, piece)] == ids(tokenizer, text)


@given(TEXTS, st.integers(1, 12))
@settings(max_examples=examples(1500))
@pytest.mark.slow
def test_slices_of_harmony_have_the_tokens_of_the_library(text: str, size: int) -> None:
    encoding = harmony().encoding
    whole = encoding.encode(text, disallowed_special=())
    texts = harmony_text(encoding)
    assert texts.encode(text) == whole
    # A long text is encoded by another library.
    long_text = text + " word" * 1000
    assert texts.encode(long_text) == encoding.encode(long_text, disallowed_special=())
    assert [token for piece in slices(text, CUT_ANYWHERE, size) for token in texts.encode(piece)] == whole


@given(TEXTS, st.sampled_from([" ", "\u3000", " \t"]), st.integers(4090, 4100), TEXTS)
@settings(max_examples=examples(200))
@pytest.mark.slow
def test_long_runs_of_white_space_have_the_tokens_of_the_library(before: str, space: str, count: int, behind: str) -> None:
    text = before + space * count + behind
    assert harmony_text(harmony().encoding).encode(text) == harmony().encoding.encode(text, disallowed_special=())


@given(TEXTS, TEXTS)
@settings(max_examples=examples(200))
def test_prompts_of_harmony_are_those_of_the_library(rules: str, text: str) -> None:
    conversation = turn(user(text), {**user(text), "role": "developer"}, user("x"), instructions=rules, tools=(WEATHER,))
    again = Conversation.from_messages(
        harmony().encoding.parse_messages_from_completion_tokens(harmony().render(conversation)[1:-2], Role.SYSTEM)
    )
    assert again.messages
    config = RenderConversationConfig(auto_drop_analysis=False)
    message = Message.from_role_and_content(Role.USER, text)
    library = harmony().encoding.render_conversation_for_completion(
        Conversation.from_messages([message]), Role.ASSISTANT, config
    )
    assert harmony().render(turn(user(text)))[-len(library) :] == library


RUNS = [
    "x" * 700,
    " " * 700,
    "é" * 600,
    "-" * 1000,
    '"' * 600,
    "\\" * 600,
    '."' * 400,
    "\x1c" * 600,
    "\t" * 600,
    "a\t" * 20,
    "\u3000" * 600,
]


@pytest.mark.parametrize("run", RUNS)
def test_tools_with_long_runs_are_rendered_as_by_the_library(run: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "enum": [f"x{run}x"], "description": f"y{run}y"}}}
    tool = {**WEATHER, "description": f"Begin {run} end.\nNext {run} end.", "parameters": schema}
    rendered = harmony().render(turn(user("x"), instructions="Be brief.", tools=(tool,)))
    description = ToolDescription.new(tool["name"], tool["description"], schema)
    content = DeveloperContent.new().with_instructions("Be brief.").with_function_tools([description])
    library = harmony().encoding.render(Message.from_role_and_content(Role.DEVELOPER, content))
    assert any(rendered[at : at + len(library)] == library for at in range(len(rendered)))


@pytest.mark.parametrize("run", ['"' * 200_000, '."' * 100_000, "x" * 200_000, "\t" * 1_000_000, "\x1c" * 200_000])
def test_long_runs_in_tools_take_no_quadratic_time(run: str) -> None:
    schema = {"type": "object", "properties": {run: {"type": "string", "enum": [run]}}}
    began = time.process_time()
    harmony().render(turn(user("x"), tools=({**WEATHER, "description": run, "parameters": schema},)))
    assert time.process_time() - began < 20


def test_marks_of_a_client_in_tools_stay_text() -> None:
    marks = '\ue0f50"\ue0f6 \ue0f4 \ue0f599"\ue0f6'
    tool = {**WEATHER, "description": f"{marks} {'x' * 700} {marks}"}
    text = harmony().encoding.decode_utf8(harmony().render(turn(user("x"), instructions="Be brief.", tools=(tool,))))
    assert text.count("Be brief.") == 1
    assert text.count("x" * 700) == 1
    assert text.count("\ue0f4") == 2


@pytest.mark.parametrize(
    "text", ["é" * 200_000, "A" * 300_000, "ACGT" * 50_000, " " * 1_500_000, "\n" * 500_000, " " * 1_000_000 + "\n x"]
)
def test_long_runs_take_no_quadratic_time(text: str) -> None:
    began = time.process_time()
    assert harmony_text(harmony().encoding).encode(text)
    assert time.process_time() - began < 20


def bounds() -> dict[str, tuple[LowerBound, TokenizerAdapter | None]]:
    demo = demo_vocabulary()
    assert demo._bound is not None
    return {"harmony": (harmony_text(harmony().encoding)._bound, None), "demo": (demo._bound, demo)}


@given(st.sampled_from(sorted(bounds())), TEXTS | st.text())
@settings(max_examples=examples(500))
def test_a_text_has_at_least_as_many_tokens_as_its_bound(name: str, text: str) -> None:
    bound, vocabulary = bounds()[name]
    if vocabulary is not None:
        # As the adapter does before it counts: the normalizer of the demo model composes, which can shorten a text.
        text = normalize("NFC", text)
    token_ids = vocabulary.encode(text) if vocabulary else harmony_text(harmony().encoding).encode(text)
    assert bound.count(text) <= len(token_ids)


@pytest.mark.parametrize("name", sorted(bounds()))
def test_the_bound_is_not_far_from_the_truth(name: str) -> None:
    bound, vocabulary = bounds()[name]
    text = "The quick brown fox jumps over the lazy dog, and then it rests for a while.\n" * 1000
    token_ids = vocabulary.encode(text) if vocabulary else harmony_text(harmony().encoding).encode(text)
    assert bound.count(text) > len(token_ids) / 10


MOST = 5000
LONG = {"words": "some words " * 1_000_000, "é": "é" * 10_000_000, "one letter": "a" * 10_000_000}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("dialect", [harmony(), chat(vocabulary=demo_vocabulary())], ids=["harmony", "demo"])
def test_a_text_that_cannot_fit_is_refused_before_it_is_tokenized(dialect, name: str) -> None:  # type: ignore[no-untyped-def]
    conversation = turn(user(LONG[name]))
    began = time.process_time()
    with pytest.raises(TooLong) as caught:
        dialect.render(conversation, Budget(MOST))
    assert caught.value.min_tokens > MOST
    assert time.process_time() - began < 2


@pytest.mark.parametrize("dialect", [harmony(), chat(vocabulary=demo_vocabulary())], ids=["harmony", "demo"])
def test_a_budget_is_the_number_of_tokens_that_are_taken(dialect, subtests: pytest.Subtests) -> None:  # type: ignore[no-untyped-def]
    conversation = turn(user("some words " * 5000))
    length = len(dialect.render(conversation))
    assert len(dialect.render(conversation, Budget(length))) == length
    for less in (length - 1, length // 2, 10):
        with subtests.test(less=less), pytest.raises(TooLong):
            dialect.render(conversation, Budget(less))


@pytest.mark.parametrize("dialect", [harmony(), chat(vocabulary=demo_vocabulary())], ids=["harmony", "demo"])
def test_rendering_can_be_stopped(dialect) -> None:  # type: ignore[no-untyped-def]
    budget = Budget()
    budget.stop()
    with pytest.raises(Stopped):
        dialect.render(turn(user("x" * 10_000)), budget)


def test_tokenizers_that_are_not_known_are_neither_cut_nor_bounded() -> None:
    unknown = known(r"\w+|\W+", False)
    assert safe_cut(unknown) is None
    prefixed = Tokenizer.from_str(demo_vocabulary()._tokenizer.to_str())
    prefixed.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    assert safe_cut(prefixed) is None
    assert not preserves_all_bytes(prefixed)
    stripping = Tokenizer.from_str(demo_vocabulary()._tokenizer.to_str())
    stripping.add_special_tokens([AddedToken("<|x|>", special=True, normalized=False, lstrip=True)])
    assert safe_cut(stripping) is None
    assert not preserves_all_bytes(stripping)
    assert list(islice(slices("a b " * 1000, None, 10), 2)) == ["a b " * 1000]
