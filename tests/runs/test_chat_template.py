"""The query keys `chat_template` and `tool_parser` of an engine URL."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path
from urllib.parse import quote

import pytest
from django.core.exceptions import ImproperlyConfigured

from responses_app.dialects.base import Turn
from responses_app.engine_interface import EngineUnavailable
from responses_app.runs.models import ServedModel, parse_models, start_all
from tests.support.dialects.checkpoints import byte_tokenizer_json, write_files
from tests.support.dialects.parser_driver import CHATML

# They import transformers.
pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path, config_json={"model_type": "llama"}, tokenizer_json=byte_tokenizer_json("<s>"))
    return write_files(tmp_path, chat_template_jinja="own", other_jinja="other {{ messages[0].content }}", tape_jsonl="")


def served(folder: Path, template: str) -> dict[str, ServedModel]:
    query = f"tokenizer={quote(str(folder))}&chat_template={quote(template)}"
    return parse_models(f"mine=script://{folder}/tape.jsonl?{query}")


@pytest.mark.filterwarnings("ignore")
def test_the_template_of_the_url_replaces_that_of_the_model(folder: Path) -> None:
    model = served(folder, f"{folder}/other.jinja")["mine"]
    asyncio.run(model.open())
    assert model.dialect is not None
    turn = Turn(items=[{"role": "user", "content": "Hi"}], today=date(2026, 1, 1))
    assert model.dialect.token_text(model.dialect.render(turn)) == "other Hi"


@pytest.mark.filterwarnings("ignore")
def test_a_missing_template_is_named_with_the_model_at_start(folder: Path) -> None:
    with pytest.raises(EngineUnavailable, match=r"mine: chat_template=/none\.jinja is neither a file nor the name"):
        asyncio.run(start_all(served(folder, "/none.jinja")))


@pytest.mark.parametrize("key", ["tool_parser", "reasoning_parser"])
def test_an_unknown_parser_is_refused_with_the_model_and_the_allowed_names(folder: Path, key: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"RESPONSES_MODELS: mine: {key}=qwen9 is unknown. Allowed: none, .*qwen3"):
        parse_models(f"mine=script://{folder}/tape.jsonl?tokenizer={quote(str(folder))}&{key}=qwen9")


@pytest.mark.filterwarnings("ignore")
def test_calls_that_no_format_reads_are_logged_at_start(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    call = "'\n<tool_call>\n' + call.function | tojson + '\n</tool_call>'"
    assert call in CHATML
    # The name behind the arguments.
    template = CHATML.replace(call, "'<act>' + call.function.arguments | tojson + call.function.name + '</act>'")
    write_files(folder, chat_template_jinja=template)
    model = served(folder, f"{folder}/chat_template.jinja")["mine"]
    with caplog.at_level("WARNING", "responses.models"):
        asyncio.run(model.open())
    assert model.family is not None
    assert model.family.as_json()["read_back"] == {"calls": "different", "reasoning": "equal"}
    warning = "mine: The chat template writes calls in a form that no known tool parser reads: calls of this model will be shown as text."
    assert warning in caplog.text
