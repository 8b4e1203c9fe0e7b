"""Checkpoints: files in folders and in the cache of the model hub, templates, added tokens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from responses_app.dialects.checkpoint import Checkpoint
from tests.support.dialects.checkpoints import write_files

HERMES = '<tool_call>{"name": }</tool_call>'


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, {}),
        ({"tokenizer_config_json": {"chat_template": "a"}}, {"default": "a"}),
        ({"chat_template_json": {"chat_template": "a"}}, {"default": "a"}),
        ({"chat_template_jinja": "b", "tokenizer_config_json": {"chat_template": "a"}}, {"default": "b"}),
        (
            {
                "tokenizer_config_json": {
                    "chat_template": [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]
                }
            },
            {"default": "a", "tool_use": "b"},
        ),
        (
            {"chat_template_jinja": "a", "additional_chat_templates__tool_use_jinja": "b"},
            {"default": "a", "tool_use": "b"},
        ),
    ],
    ids=["none", "tokenizer_config", "json", "jinja_replaces", "list", "additional"],
)
def test_chat_templates_are_found_in_every_file(tmp_path: Path, files: dict[str, Any], expected: dict[str, str]) -> None:
    assert Checkpoint(str(write_files(tmp_path, **files))).chat_templates() == expected


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config_json": {"added_tokens_decoder": {"7": {"content": "<a>", "special": True}}}},
        {"tokenizer_json": {"version": "1.0", "added_tokens": [{"id": 7, "content": "<a>"}], "model": {"vocab": {}}}},
    ],
    ids=["tokenizer_config", "tokenizer"],
)
def test_added_tokens_are_found_in_both_files(tmp_path: Path, files: dict[str, Any]) -> None:
    assert Checkpoint(str(write_files(tmp_path, **files))).added_tokens() == {"<a>"}


@pytest.mark.parametrize("content", ["{", "[]"])
def test_invalid_json_is_a_value_error(tmp_path: Path, content: str) -> None:
    checkpoint = Checkpoint(str(write_files(tmp_path, config_json=content)))
    with pytest.raises(ValueError, match=r"config\.json|Expecting"):
        _ = checkpoint.config


@pytest.mark.parametrize(
    ("files", "parsers"),
    [
        ({"config_json": {"model_type": "qwen2"}, "chat_template_jinja": HERMES}, (None, "hermes")),
        ({"config_json": {"model_type": "seed_oss"}}, ("seed_oss", "seed_oss")),
        ({"config_json": {"architectures": ["Ministral3ForCausalLM"]}}, ("mistral", "mistral")),
        ({"config_json": {"model_type": "mistral"}, "tekken_json": {}}, ("mistral", "mistral")),
    ],
    ids=["template", "model_type", "architecture", "tekken"],
)
def test_a_family_is_detected_from_files(tmp_path: Path, files: dict[str, Any], parsers: tuple[str | None, str | None]) -> None:
    detection = Checkpoint(str(write_files(tmp_path, **files))).detect_family()
    assert (detection.reasoning_parser, detection.tool_parser) == parsers


def test_detection_in_a_folder_imports_neither_transformers_nor_vllm(tmp_path: Path) -> None:
    write_files(tmp_path, config_json={"model_type": "qwen3"}, chat_template_jinja=HERMES)
    script = (
        "import sys; from responses_app.dialects.checkpoint import Checkpoint;"
        "assert Checkpoint(sys.argv[1]).detect_family().tool_parser == 'hermes';"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'vllm', 'transformers', 'torch', 'django'}))"
    )
    assert _run(script, str(tmp_path)) == "[]"


@pytest.mark.slow
def test_a_model_in_the_cache_of_the_hub_is_read_without_a_connection(tmp_path: Path) -> None:
    model = tmp_path / "hub/models--owner--name"
    write_files(model / "snapshots/0123", config_json={"model_type": "qwen3"}, chat_template_jinja=HERMES)
    (model / "refs").mkdir()
    (model / "refs/main").write_text("0123")
    script = (
        "from responses_app.dialects.checkpoint import Checkpoint;"
        "checkpoint = Checkpoint('owner/name'); print(checkpoint.name, checkpoint.detect_family().tool_parser)"
    )
    assert _run(script, HF_HOME=str(tmp_path), HF_HUB_CACHE=str(tmp_path / "hub"), HF_HUB_OFFLINE="1") == "name hermes"


def _run(script: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout.strip()
