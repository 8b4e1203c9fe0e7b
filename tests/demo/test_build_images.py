"""Images in demo-chat: tokens, template, and the parts of its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from responses_app.demo import build as building

# Tokens of one image in a prompt.
IMAGE_TOKENS = 4
MARKS = f"<fake_token_around_image><global-img>{'<image>' * IMAGE_TOKENS}<fake_token_around_image>"


@pytest.fixture
def config() -> dict[str, Any]:
    """Return the committed configuration."""
    config: dict[str, Any] = json.loads((building.FOLDERS["demo-chat"] / "config.json").read_text())
    return config


def test_image_tokens_follow_the_text_vocabulary(config: dict[str, Any]) -> None:
    from tokenizers import Tokenizer

    committed = Tokenizer.from_file(str(building.FOLDERS["demo-chat"] / "tokenizer.json"))
    tokenizer = building.image_tokenizer()
    assert tokenizer.token_to_id("<image>") == committed.get_vocab_size() == config["image_token_id"]
    assert tokenizer.get_vocab_size() == config["text_config"]["vocab_size"]
    assert tokenizer.encode(MARKS).ids.count(config["image_token_id"]) == IMAGE_TOKENS


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Hi", "Hi"),
        ([{"type": "text", "text": "Hi"}], "Hi"),
        ([{"type": "image"}, {"type": "text", "text": "Hi"}], "[picture:<image>]\nHi"),
    ],
)
def test_template_renders_text_and_images(content: object, expected: str) -> None:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment()
    environment.filters["tojson"] = json.dumps
    template = environment.from_string((building.FOLDERS["demo-chat"] / "chat_template.jinja").read_text())
    text = template.render(messages=[{"role": "user", "content": content}], add_generation_prompt=True)
    assert text == f"<|im_start|>user\n{expected}<|im_end|>\n<|im_start|>assistant\n"


def test_context_holds_a_long_first_request(config: dict[str, Any]) -> None:
    text = config["text_config"]
    assert text["max_position_embeddings"] >= 32_768
    assert text["layer_types"] == ["sliding_attention"] * text["num_hidden_layers"]


def test_build_joins_text_model_and_image_encoder(tmp_path: Path) -> None:
    from safetensors import safe_open

    folder = building.build("demo-chat", tmp_path)
    with safe_open(folder / "model.safetensors", "np") as file:
        names = set(file.keys())
    assert {name.split(".")[1] for name in names} == {"text_model", "vision_model", "connector"}
    wanted = {"tokenizer.json", "preprocessor_config.json", "processor_config.json", "chat_template.jinja"}
    assert {path.name for path in folder.iterdir()} >= wanted


@pytest.mark.parametrize("name", ["demo-chat", "demo-harmony"])
def test_answers_end_after_512_tokens_by_default(name: str) -> None:
    config = json.loads((building.FOLDERS[name] / "generation_config.json").read_text())
    assert config["max_new_tokens"] == 512


def test_reasoning_and_repetitions_of_the_default_model_end() -> None:
    config = json.loads((building.FOLDERS["demo-chat"] / "generation_config.json").read_text())
    assert (config["max_reasoning_length"], config["max_repetitions"]) == (240, 16)
