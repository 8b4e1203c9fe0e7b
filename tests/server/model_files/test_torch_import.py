"""Processes without an engine read models without PyTorch, and tokenize the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from responses_app.dialects.loading import ENCODERS

TEXT = 'Weather in Zürich? <think> <tool_call>{"a": 1}</tool_call> 👩‍🚀\n'
READ = """
import json, sys
from responses_app.dialects.torch_import import prevent_torch_import
source, is_prevented = sys.argv[1], sys.argv[2] == "prevented"
if is_prevented:
    prevent_torch_import([(source, None)])
from responses_app.dialects.checkpoint import Checkpoint
from responses_app.dialects.loading import load_tokenizer
tokenizer = load_tokenizer(Checkpoint(source))
print(json.dumps([sys.modules.get("torch") is None, tokenizer.encode(sys.argv[3]), tokenizer.special_tokens_map]))
"""
PREVENT = """
import sys
from responses_app.dialects.torch_import import prevent_torch_import
prevent_torch_import([(source, None) for source in sys.argv[1:]])
print("torch" in sys.modules)
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.splitlines()[-1]


def test_tokenizer_is_the_same_without_torch(demo_folder: Path) -> None:
    without, *read = json.loads(run(READ, str(demo_folder), "prevented", TEXT))
    is_missing, *expected = json.loads(run(READ, str(demo_folder), "as usual", TEXT))
    assert (without, is_missing) == (True, False)
    assert read == expected


def copy_with(model: Path, folder: Path, template: str | None = None, **config: Any) -> str:
    """Copy the files that are read before the tokenizer, with changes of config.json and another template."""
    folder.mkdir()
    original = json.loads((model / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(original | config))
    (folder / "chat_template.jinja").write_text(template or (model / "chat_template.jinja").read_text())
    return str(folder)


def test_import_is_prevented_for_models_that_need_no_code_of_vllm(demo_folder: Path, tmp_path: Path) -> None:
    text_only = "{% for message in messages %}{{ message.content }}{% endfor %}"
    no_images: dict[str, Any] = {"vision_config": None, "image_token_id": None}
    models = {
        "with images": (str(demo_folder), True),
        "without images": (copy_with(demo_folder, tmp_path / "a", text_only, **no_images), True),
        "images that only vLLM can place": (copy_with(demo_folder, tmp_path / "b", text_only), False),
        "prompt encoder of vLLM": (copy_with(demo_folder, tmp_path / "c", model_type=min(ENCODERS)), False),
        "name that is in no cache": ("nobody/knows-this", False),
        "invalid name": ("no such folder/ä", False),
    }
    assert {name: run(PREVENT, source) for name, (source, _) in models.items()} == {
        name: str(is_prevented) for name, (_, is_prevented) in models.items()
    }
    assert run(PREVENT, str(demo_folder), "nobody/knows-this") == "False"
