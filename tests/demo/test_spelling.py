"""The heads of demo-harmony that no training made, and the vocabulary that the heads spell."""

from __future__ import annotations

import json

from responses_app.demo import build, growing, o200k, spelling
from responses_app.demo.build import FOLDERS
from responses_app.demo.o200k_files import checked_pieces, special_names

# The token <|call|> of Harmony.
CALL = 200012


def test_the_tokenizer_of_gpt_oss_is_the_published_one() -> None:
    assert len(checked_pieces()) == o200k.ORDINARY
    assert special_names()[CALL - o200k.ORDINARY] == "<|call|>"


def test_the_pieces_of_a_word_are_the_word_without_its_blank() -> None:
    spellings = build.spellings(special_names())
    pieces = spelling.pieces_of(spellings)
    spelt = [i for i, found in enumerate(pieces) if found[0] >= 0]
    assert len(spelt) > 100_000
    assert all(b" " + b"".join(spellings[p] for p in pieces[i] if p >= 0) == spellings[i] for i in spelt)


def test_growing_makes_every_tensor_fit_its_configuration() -> None:
    tensors = build._read(FOLDERS["demo-harmony"] / build.WEIGHTS)
    tensors.pop("model.embed_tokens.weight")
    config = json.loads((FOLDERS["demo-harmony"] / "config.json").read_text())
    grown = growing.grown(tensors, config["rope_theta"])
    width, heads = config["hidden_size"], config["num_attention_heads"] * config["head_dim"]
    assert grown["model.layers.2.self_attn.q_proj.weight"].shape == (heads, width)
    assert grown["model.layers.2.self_attn.o_proj.weight"].shape == (width, heads)
    assert grown["model.layers.2.self_attn.sinks"].shape == (config["num_attention_heads"],)
    assert grown["model.layers.2.mlp.router.weight"].shape == (config["num_local_experts"], width)
    assert grown["model.layers.2.mlp.experts.gate_up_proj"].shape[1] == width
    assert grown["model.layers.2.mlp.experts.down_proj"].shape[2] == width
