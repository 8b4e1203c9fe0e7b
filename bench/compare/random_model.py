"""Random model: two layers of width 64 with the tokenizer of demo-chat, so that the servers are measured and not the engine."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from responses_app.demo.build import FOLDERS, build, image_tokenizer

if TYPE_CHECKING:
    from responses_app.demo.packing import Floats

NAME = "random-64"
WIDTH, LAYERS, HEADS, HEAD, INNER = 64, 2, 2, 32, 128
SEED = 1
# With bfloat16 the attention of vLLM uses AMX. No product of this width asks the kernel for AMX, and neither does vLLM's own
# executor: its worker dies of SIGILL.
ENGINE_OPTIONS = {"dtype": "float32"}
COPIED = ("chat_template.jinja", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
# Words in lower case, with or without a blank in front. The model generates no other token.
PLAIN = re.compile(r" ?[a-z]+")


def build_random_model(folder: Path) -> Path:
    """Write the checkpoint into `folder/random-64` and return the path."""
    from responses_app.demo.packing import write_bfloat16

    source, target = build("demo-chat", folder), folder / NAME
    target.mkdir(exist_ok=True)
    for name in COPIED:
        shutil.copyfile(source / name, target / name)
    (target / "config.json").write_text(json.dumps(_config()))
    write_bfloat16(_tensors(), target / "model.safetensors")
    return target


def _config() -> dict[str, Any]:
    """Build the configuration: that of demo-chat's text model, with fewer and smaller layers."""
    config: dict[str, Any] = json.loads((FOLDERS["demo-chat"] / "config.json").read_text())["text_config"]
    sizes = {"hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS, "head_dim": HEAD}
    heads = {"num_attention_heads": HEADS, "num_key_value_heads": HEADS}
    for name in ("layer_types", "sliding_window"):
        del config[name]
    return config | sizes | heads | {"attention_bias": False, "tie_word_embeddings": False}


def _tensors() -> dict[str, Floats]:
    import numpy as np

    generator = np.random.default_rng(SEED)
    tokens = image_tokenizer().get_vocab_size()
    shapes = {"model.embed_tokens": (tokens, WIDTH), "lm_head": (tokens, WIDTH)}
    for layer in range(LAYERS):
        shapes |= _layer_shapes(f"model.layers.{layer}.")
    tensors = {f"{name}.weight": generator.standard_normal(shape, np.float32) / WIDTH**0.5 for name, shape in shapes.items()}
    tensors["lm_head.weight"][_other_tokens()] = 0.0
    norms = [f"model.layers.{layer}.{name}_layernorm" for layer in range(LAYERS) for name in ("input", "post_attention")]
    return tensors | {f"{name}.weight": np.ones(WIDTH, np.float32) for name in (*norms, "model.norm")}


def _layer_shapes(prefix: str) -> dict[str, tuple[int, int]]:
    attention = {f"{prefix}self_attn.{name}_proj": (HEADS * HEAD, WIDTH) for name in "qkvo"}
    into = {f"{prefix}mlp.{name}_proj": (INNER, WIDTH) for name in ("gate", "up")}
    return attention | into | {f"{prefix}mlp.down_proj": (WIDTH, INNER)}


def _other_tokens() -> list[int]:
    """List the tokens that are no plain words: their logits are 0, far below the highest logit of the words."""
    tokenizer = image_tokenizer()
    every = range(tokenizer.get_vocab_size())
    return [token for token in every if not PLAIN.fullmatch(tokenizer.decode([token], skip_special_tokens=False))]
