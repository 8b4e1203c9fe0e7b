"""Opening of checkpoints without named parsers: the detected family decides which dialect reads the output."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.installation.data_dir import ROOT
from responses_app.protocol.deltas import ReasoningDelta, TextDelta
from tests.support.dialects.open_dialect import open_dialect
from tests.support.dialects.parser_driver import CHATML, END, call, demo_vocabulary, parse_chunks, turn

pytestmark = pytest.mark.engine

DEMO = ROOT / "responses_app/demo/chat_files"
XML = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"
XML_CALL = """{{- '<tool_call>\n<function=' + call.function.name + '>\n' }}
{%- for name, value in call.function.arguments.items() %}{{- '<parameter=' + name + '>\n' }}
{{- value if value is string else value | tojson }}{{- '\n</parameter>\n' }}{%- endfor %}{{- '</function>\n</tool_call>' }}"""


def checkpoint(folder: Path, model_type: str, template: str = CHATML) -> str:
    for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(DEMO / file, folder)
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    (folder / "chat_template.jinja").write_text(template)
    return str(folder)


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore")
def test_calls_of_a_detected_family_are_parsed_without_named_parsers(tmp_path: Path) -> None:
    json_call = "{{- '\n<tool_call>\n' + call.function | tojson + '\n</tool_call>' }}"
    assert json_call in CHATML
    template = CHATML.replace(json_call, XML_CALL)
    dialect = open_dialect(checkpoint(tmp_path, "qwen3_5", template))
    tokens = demo_vocabulary().encode("<think>\nHm.\n</think>\n\nHello.\n" + XML + "<|im_end|>")
    expected = [ReasoningDelta("Hm."), END, TextDelta("Hello."), END, *call('{"city": "Oslo"}')]
    assert parse_chunks(dialect, turn(), tokens) == expected


@pytest.mark.parametrize(
    ("model_type", "parsers", "dialect"),
    [
        ("gpt_oss", {}, "HarmonyDialect"),
        ("gpt_oss", {"reasoning_parser": "openai_gptoss", "tool_parser": "openai"}, "HarmonyDialect"),
        ("gpt_oss", {"reasoning_parser": "qwen3", "tool_parser": "hermes"}, "ChatDialect"),
        ("qwen3", {}, "ChatDialect"),
        ("seed_oss", {"reasoning_parser": "none", "tool_parser": "none"}, "ChatDialect"),
    ],
    ids=["harmony", "harmony_named", "harmony_replaced", "detected", "none"],
)
def test_parsers_choose_the_dialect(tmp_path: Path, model_type: str, parsers: dict[str, str], dialect: str) -> None:
    opened = open_dialect(checkpoint(tmp_path, model_type), **parsers)
    assert type(opened).__name__ == dialect
    assert isinstance(opened, ChatDialect) is (dialect == "ChatDialect")


@pytest.mark.parametrize(
    ("model_type", "parsers"),
    [
        ("qwen3", {"tool_parser": "openai"}),
        ("qwen3", {"reasoning_parser": "openai_gptoss", "tool_parser": "openai"}),
        ("gpt_oss", {"tool_parser": "none"}),
        ("gpt_oss", {"reasoning_parser": "qwen3"}),
    ],
    ids=["one_of_two", "other_model", "without_calls", "other_reasoning"],
)
def test_harmony_with_other_parsers_or_models_is_refused(tmp_path: Path, model_type: str, parsers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"openai_gptoss and openai are one format, for models with model_type gpt_oss"):
        open_dialect(checkpoint(tmp_path, model_type), **parsers)
