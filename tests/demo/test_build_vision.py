"""demo-vision: what it has from demo-chat, and its eyes."""

from __future__ import annotations

import json
from pathlib import Path

from responses_app.demo import build as building

# One image in a prompt: as many tokens as the eyes of demo-vision make of an image.
SEEN = 4
MARKS = f"<fake_token_around_image><global-img>{'<image>' * SEEN}<fake_token_around_image>"


def test_the_vocabulary_of_its_mind_comes_first() -> None:
    chat = json.loads((building.FOLDERS["demo-chat"] / "config.json").read_text())
    vision = json.loads((building.FOLDERS["demo-vision"] / "config.json").read_text())
    tokenizer = building.vision_tokenizer()
    assert tokenizer.token_to_id("<image>") == chat["vocab_size"] == vision["image_token_id"]
    assert tokenizer.get_vocab_size() == vision["text_config"]["vocab_size"]
    assert tokenizer.encode(MARKS).ids.count(vision["image_token_id"]) == SEEN
    same = ("hidden_size", "num_hidden_layers", "num_attention_heads", "head_dim", "rope_theta", "attention_bias")
    assert {key: chat[key] for key in same} == {key: vision["text_config"][key] for key in same}


def test_the_templates_differ_in_pictures_alone() -> None:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    texts = []
    for name in ("demo-chat", "demo-vision"):
        environment = ImmutableSandboxedEnvironment()
        environment.filters["tojson"] = json.dumps
        template = environment.from_string((building.FOLDERS[name] / "chat_template.jinja").read_text())
        content = [{"type": "text", "text": "Hi"}]
        messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": content}]
        texts.append(template.render(messages=messages, add_generation_prompt=True))
    assert texts[0] == texts[1]


def test_a_build_has_eyes_and_mind(tmp_path: Path) -> None:
    from safetensors import safe_open

    folder = building.build("demo-vision", tmp_path)
    with safe_open(folder / "model.safetensors", "np") as file:
        names = set(file.keys())
    assert {name.split(".")[1] for name in names} == {"text_model", "vision_model", "connector"}
    wanted = {"tokenizer.json", "preprocessor_config.json", "processor_config.json", "chat_template.jinja"}
    assert {path.name for path in folder.iterdir()} >= wanted
