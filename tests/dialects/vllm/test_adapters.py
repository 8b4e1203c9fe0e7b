"""Output parsers of vLLM, declarative and legacy, with a model of another call format."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from responses_app.dialects.base import UnsupportedInput
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.formats.table import output_format
from responses_app.dialects.registry import open_dialect
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.dialects.vllm.adapters import ParserRegistry
from responses_app.dialects.vllm.dialect import VllmDialect
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Arguments, Call, Delta, ReasoningDelta, TextDelta
from tests.support.dialects.call_texts import CALL_TEXTS, TOOLS
from tests.support.dialects.parser_driver import (
    CHATML,
    CLOCK,
    END,
    OPENING,
    TODAY,
    WEATHER,
    call,
    call_output,
    demo_vocabulary,
    function_call,
    joined,
    parse_chunks,
    problems_of,
    reasoning,
    turn,
    user,
)

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

DEMO = Path(__file__).parents[3] / "responses_app/demo/chat_files"


@pytest.fixture(scope="module", autouse=True)
def _offline() -> None:
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")


@cache
def tokenizer() -> Any:
    return _tokenizer()


def _tokenizer() -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=str(DEMO / "tokenizer.json"), eos_token="<|im_end|>")


@cache
def dialect(reasoning: str | None, tool: str | None) -> Any:
    vocabulary = TokenizerAdapter(tokenizer().backend_tokenizer, visible=tokenizer().all_special_tokens)
    stop = vocabulary.id("<|im_end|>")
    assert stop is not None
    return VllmDialect(vocabulary, ChatTemplate(CHATML), [stop], ParserRegistry(tokenizer(), reasoning, tool))


XML = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"
IN_OSLO = call('{"city": "Oslo"}')
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
DECLARATIVE: dict[str, tuple[str, list[Delta]]] = {
    "thought_call_call_text": (
        "<think>\nHm.\n</think>\n\n" + XML + "\n" + XML + "\nDone.<|im_end|>",
        [ReasoningDelta("Hm."), END, *IN_OSLO, *IN_OSLO, TextDelta("Done."), END],
    ),
    "text": ("<think>\nHm.\n</think>\n\nHello.<|im_end|>", [ReasoningDelta("Hm."), END, TextDelta("Hello."), END]),
    "text_around_a_call": ("</think>a\n" + XML + "\nb<|im_end|>", [TextDelta("a"), END, *IN_OSLO, TextDelta("b"), END]),
    "call_inside_of_reasoning": ("<think>\nHm.\n" + XML + "<|im_end|>", [ReasoningDelta("Hm."), END, *IN_OSLO]),
}
GROUPINGS: list[list[int]] = [[], [1] * 400, [3] * 200, [7] * 100]


@pytest.mark.parametrize("cuts", GROUPINGS)
@pytest.mark.parametrize("tape", DECLARATIVE)
def test_a_declarative_parser_keeps_the_order_whatever_the_grouping(tape: str, cuts: list[int]) -> None:
    text, expected = DECLARATIVE[tape]
    assert parse_chunks(dialect("qwen3", "qwen3_coder"), turn(), demo_vocabulary().encode(text), cuts) == expected


@pytest.mark.parametrize("cuts", GROUPINGS)
def test_legacy_parsers_agree_for_every_grouping(cuts: list[int]) -> None:
    text = "<think>\nHm.\n</think>\n\n" + HERMES + "\n" + HERMES + "<|im_end|>"
    parsed = parse_chunks(dialect("deepseek_r1", "hermes"), turn(), demo_vocabulary().encode(text), cuts)
    calls = [piece for piece in parsed if isinstance(piece, Call)]
    arguments = [json.loads(piece.text) for piece in parsed if hasattr(piece, "text") and piece.text.startswith("{")]
    assert parsed[0] == ReasoningDelta("Hm.")
    assert [each.name for each in calls] == ["get_weather"] * 2
    assert arguments == [{"city": "Oslo"}] * 2
    assert not [piece for piece in parsed if isinstance(piece, TextDelta)]


@pytest.mark.parametrize("pair", [("qwen3", "qwen3_coder"), ("deepseek_r1", "hermes")])
@pytest.mark.parametrize("words", ["Hm.", "a</think>b<tool_call>c"])
def test_reasoning_and_calls_of_earlier_turns_do_not_change_parsing(pair: tuple[str, str], words: str) -> None:
    before = (user(words), reasoning(words), function_call("c", '{"city": "Oslo"}'), call_output("c", words))
    tokens = demo_vocabulary().encode("<think>\nHm.\n</think>\n\nHello.<|im_end|>")
    assert parse_chunks(dialect(*pair), turn(*before), tokens) == [ReasoningDelta("Hm."), END, TextDelta("Hello."), END]


@pytest.mark.parametrize(("pair", "spelled"), [(("qwen3", "qwen3_coder"), XML), (("deepseek_r1", "hermes"), HERMES)])
def test_f1_a_call_against_tool_choice_none_is_text_without_marks(pair: tuple[str, str], spelled: str) -> None:
    parsed = parse_chunks(
        dialect(*pair), turn(tool_choice="none"), demo_vocabulary().encode("</think>" + spelled + "<|im_end|>")
    )
    assert [type(piece) for piece in parsed] == [TextDelta, type(END)]
    assert isinstance(parsed[0], TextDelta)
    assert "tool_call>" not in parsed[0].text


@pytest.mark.parametrize("pair", [("qwen3", "qwen3_coder"), ("deepseek_r1", "hermes")])
@pytest.mark.parametrize("length", range(1, len("<tool_call>")))
def test_e4_half_a_marker_at_the_cut_is_no_text(pair: tuple[str, str], length: int) -> None:
    text = "</think>Hello." + "<tool_call>"[:length]
    parsed = parse_chunks(dialect(*pair), turn(), demo_vocabulary().encode(text))
    assert [piece.text for piece in parsed if isinstance(piece, TextDelta)] == ["Hello."]


def test_a_cut_call_keeps_its_item_open() -> None:
    parsed = parse_chunks(dialect("qwen3", "qwen3_coder"), turn(), demo_vocabulary().encode("</think>" + XML[:70]))
    assert Call("get_weather") in parsed
    assert parsed[-1] != END


@cache
def dialect_of_format(tool: str) -> VllmDialect:
    """Create a dialect with vLLM's own parser; the markers of the format are tokens."""
    from vllm.tokenizers.hf import get_cached_tokenizer

    output = output_format(None, tool)
    assert output is not None
    fast = _tokenizer()
    fast.add_tokens([marker for marker in output.markers if " " not in marker])
    cached = get_cached_tokenizer(fast)
    vocabulary = TokenizerAdapter(cached.backend_tokenizer, visible=set(cached.get_added_vocab()))
    stop = vocabulary.id("<|im_end|>")
    assert stop is not None
    return VllmDialect(vocabulary, ChatTemplate(CHATML), [stop], ParserRegistry(cached, None, tool))


@pytest.mark.parametrize("tool", ["qwen3_coder", "gemma4", "deepseek_v32", "plamo3", "hermes", "pythonic", "granite-20b-fc"])
def test_call_that_is_cut_inside_of_its_name_is_no_call(tool: str) -> None:
    parsed = dialect_of_format(tool)
    tokens = parsed.vocabulary.encode(CALL_TEXTS[tool].one)
    cuts = [parse_chunks(parsed, turn(tools=TOOLS), tokens[:length], [1] * length) for length in range(1, len(tokens))]
    assert {delta.name for deltas in cuts for delta in deltas if isinstance(delta, Call)} == {"get_weather"}


@pytest.mark.parametrize("cuts", GROUPINGS)
def test_call_that_a_parser_does_not_stream_is_written_at_the_end(cuts: list[int]) -> None:
    parsed = dialect_of_format("granite-20b-fc")
    tokens = parsed.vocabulary.encode(f"I look.\n{CALL_TEXTS['granite-20b-fc'].one}<|im_end|>")
    found = parse_chunks(parsed, turn(tools=TOOLS), tokens, cuts)
    assert found[-3:] == [Call("get_weather"), Arguments('{"city": "Oslo"}'), END]
    assert len([delta for delta in found if isinstance(delta, Call)]) == 1


def test_reasoning_tokens_are_counted() -> None:
    parser = dialect("qwen3", "qwen3_coder").parser_for(turn())
    parser.feed(Chunk(demo_vocabulary().encode("<think>\nHm hm.\n</think>\n\nHello.<|im_end|>")))
    assert 3 <= parser.reasoning_tokens <= 8


def test_a_single_call_hides_what_follows() -> None:
    parsed = parse_chunks(
        dialect("qwen3", "qwen3_coder"), turn(parallel_tool_calls=False), demo_vocabulary().encode("</think>" + XML + XML + "x")
    )
    assert parsed == IN_OSLO


def test_a_parser_that_fails_is_left_and_its_text_is_kept() -> None:
    parser = dialect("qwen3", "qwen3_coder").parser_for(turn())
    parser._parser._engine._feed = lambda *_: 1 / 0
    parsed = parser.feed(Chunk(demo_vocabulary().encode("Hello.")))
    assert joined(parsed) == [TextDelta("Hello.")]
    assert problems_of(parsed) == [("parser_failed", "")]


def test_a_required_call_is_constrained_in_the_models_own_format() -> None:
    constraint = dialect("qwen3", "qwen3_coder").constrain(turn(tool_choice="required", tools=(WEATHER, CLOCK)))
    assert "<function=get_weather>" in json.dumps(constraint.value)


def test_f6_a_required_call_is_refused_where_there_is_no_grammar_for_it() -> None:
    with pytest.raises(UnsupportedInput) as caught:
        dialect("deepseek_r1", "pythonic").constrain(turn(tool_choice="required"))
    assert caught.value.param == "tool_choice"


def test_an_unknown_parser_is_refused_when_the_model_is_opened(tmp_path: Path) -> None:
    folder = _checkpoint(tmp_path)
    with pytest.raises(ValueError, match="nonsense"):
        open_dialect(str(folder), reasoning_parser="nonsense", tool_parser="hermes")


def test_a_folder_is_opened_with_its_template_and_its_stop_tokens(tmp_path: Path) -> None:
    opened = open_dialect(str(_checkpoint(tmp_path)), reasoning_parser="qwen3", tool_parser="hermes")
    vocabulary = demo_vocabulary()
    assert set(opened.stop_token_ids) == {vocabulary.id("<|im_end|>"), vocabulary.id("<|endoftext|>")}
    assert parse_chunks(opened, turn(), vocabulary.encode("<think>\nHm.\n</think>\n\n" + HERMES + "<|im_end|>")) == [
        ReasoningDelta("Hm."),
        END,
        *IN_OSLO,
    ]


def test_a_model_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    folder = _checkpoint(tmp_path)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ValueError, match="no chat template"):
        open_dialect(str(folder))


@pytest.mark.parametrize(
    "source", [CHATML, OPENING, (DEMO / "chat_template.jinja").read_text()], ids=["chatml", "opening", "demo"]
)
@pytest.mark.parametrize("thinking", [True, False])
def test_a_template_renders_as_transformers_renders_it(source: str, thinking: bool) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Ü <b>"},
        {"role": "user", "content": "?"},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Hm.",
            "tool_calls": [{"function": {"name": "f", "arguments": {"a": "ü"}}}],
        },
        {"role": "tool", "content": "x", "name": "f"},
    ]
    tools: list[dict[str, Any]] = [
        {"type": "function", "function": {"name": "f", "description": "ü", "parameters": {"type": "object"}}}
    ]
    theirs = tokenizer().apply_chat_template(
        messages, tools=tools, chat_template=source, tokenize=False, add_generation_prompt=True, enable_thinking=thinking
    )
    assert ChatTemplate(source).render(messages, today=TODAY, tools=tools, thinking=thinking) == theirs


def _checkpoint(folder: Path) -> Path:
    tokenizer().save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(CHATML)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3", "eos_token_id": demo_vocabulary().id("<|im_end|>")}))
    ends = [demo_vocabulary().id("<|im_end|>"), demo_vocabulary().id("<|endoftext|>")]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    return folder
