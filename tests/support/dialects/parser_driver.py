"""Drives output parsers with any grouping of tokens, and joins adjacent deltas for comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from responses_app.dialects.base import Dialect, Turn
from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.formats.table import DEFAULT_OUTPUT
from responses_app.dialects.harmony.dialect import HarmonyDialect
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Arguments, Call, Delta, EndItem, OutputProblem, ReasoningDelta, TextDelta

TODAY = date(2026, 11, 20)
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
CLOCK = {"type": "function", "name": "clock", "parameters": {"type": "object", "properties": {}}}
END = EndItem()

CHATML = """{%- if messages[0].role == 'system' %}{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{%- endif %}
{%- if tools %}{{- '<|im_start|>tools\n' }}{%- for tool in tools %}{{- tool | tojson }}{%- endfor %}{{- '<|im_end|>\n' }}{%- endif %}
{%- for message in messages %}
{%- if message.role != 'system' %}{{- '<|im_start|>' + message.role + '\n' }}
{%- if message.reasoning_content %}{{- '<think>\n' + message.reasoning_content + '\n</think>\n\n' }}{%- endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}{{- '\n<tool_call>\n' + call.function | tojson + '\n</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\n' }}{%- endif %}
{%- endfor %}
{{- '<|im_start|>assistant\n' }}{%- if enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}"""
# Opens the reasoning itself, and allows system messages anywhere.
OPENING = """{%- for message in messages %}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{%- endfor %}
{{- '<|im_start|>assistant\n<think>\n' }}"""


def turn(*items: dict[str, Any], **how: Any) -> Turn:
    """Create a turn with the weather tool by default."""
    return Turn(items=items or (user("Hello"),), today=TODAY, **{"tools": (WEATHER,), **how})


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def assistant(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], **more}


def reasoning(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def function_call(call_id: str, arguments: str, name: str = "get_weather") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def call_output(call_id: str, output: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


@cache
def harmony() -> HarmonyDialect:
    return HarmonyDialect()


def harmony_tokens(text: str) -> list[int]:
    ids: list[int] = harmony().encoding.encode(text, allowed_special="all")
    return ids


@cache
def byte_vocabulary(visible: tuple[str, ...] = DEFAULT_OUTPUT.markers) -> TokenizerAdapter:
    """Create a tokenizer with a token per byte, so that every marker and umlaut is cut; only turn markers are special."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={char: index for index, char in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in ("<|im_start|>", "<|im_end|>", "<|pad|>")]
    )
    return TokenizerAdapter(tokenizer, visible=visible)


@cache
def demo_vocabulary() -> TokenizerAdapter:
    """Create the demo model's tokenizer: every marker is a single token."""
    folder = Path(__file__).parents[3] / "responses_app/demo/chat_files"
    return TokenizerAdapter(Tokenizer.from_file(str(folder / "tokenizer.json")), visible=DEFAULT_OUTPUT.markers)


@cache
def chat(template: str = CHATML, vocabulary: TokenizerAdapter | None = None, **how: Any) -> ChatDialect:
    vocabulary = vocabulary or byte_vocabulary()
    stop = vocabulary.id("<|im_end|>")
    assert stop is not None
    return ChatDialect(vocabulary, ChatTemplate(template), [stop], **how)


def parse_chunks(
    dialect: Dialect, to: Turn, tokens: Sequence[int], sizes: Iterable[int] = (), *, problems: bool = False
) -> list[Delta]:
    """Parse the tokens in chunks of the given sizes, the rest in a single chunk; return the deltas, adjacent ones joined.

    Problems of the output are left out without `problems`.
    """
    parser, at, pieces = dialect.parser_for(to), 0, []
    for size in sizes:
        pieces += parser.feed(Chunk(tokens[at : at + size]))
        at += size
    pieces += parser.feed(Chunk(tokens[at:]))
    return joined([*pieces, *parser.finish()], problems=problems)


def joined(pieces: Iterable[Delta], *, problems: bool = False) -> list[Delta]:
    """Join adjacent deltas of the same text. Problems of the output are left out without `problems`."""
    out: list[Delta] = []
    for piece in pieces:
        if isinstance(piece, OutputProblem) and not problems:
            continue
        last = out[-1] if out else None
        if isinstance(piece, TextDelta) and isinstance(last, TextDelta) and piece.phase == last.phase:
            out[-1] = replace(last, text=last.text + piece.text, logprobs=(*last.logprobs, *piece.logprobs))
        elif isinstance(piece, ReasoningDelta | Arguments) and type(piece) is type(last):
            out[-1] = replace(piece, text=last.text + piece.text)
        else:
            out.append(piece)
    return out


def problems_of(pieces: Iterable[Delta]) -> list[tuple[str, str]]:
    """Return the types and the texts of the problems."""
    return [(piece.type, piece.text) for piece in pieces if isinstance(piece, OutputProblem)]


def call(arguments: str, name: str = "get_weather") -> list[Delta]:
    return [Call(name), *([Arguments(arguments)] if arguments else []), END]


# Chunk sizes from 1 to 9, drawn as bytes: ten times as fast as a list of numbers.
sizes = st.binary(max_size=60).map(lambda raw: [1 + byte % 9 for byte in raw])
