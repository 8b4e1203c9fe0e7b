"""Writes a tiny random Qwen3 checkpoint, sufficient for vLLM to load and to generate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|stop|>", "<|channel|>", "<|message|>", "<|end|>", "<|start|>")
PLAIN = ("<think>", "</think>", "<tool_call>", "</tool_call>")
MAX_MODEL_LEN = 512


def write(into: Path) -> Path:
    """Write a checkpoint directory: byte-level tokens 0 to 255, then SPECIAL and PLAIN; `<|im_end|>` is eos."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokens = tokenizer()
    tokens.save_pretrained(into)
    torch.manual_seed(7)
    config = Qwen3Config(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=MAX_MODEL_LEN,
        eos_token_id=tokens.eos_token_id,
        tie_word_embeddings=True,
        dtype="bfloat16",
    )
    Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(into)
    (into / "generation_config.json").write_text(json.dumps({"eos_token_id": tokens.eos_token_id}))
    return into


def write_adapter(into: Path, hidden: int = 64) -> Path:
    """Write the folder of a LoRA adapter, which changes what the checkpoint generates; another `hidden` does not fit."""
    import torch
    from safetensors.torch import save_file

    into.mkdir(parents=True)
    torch.manual_seed(11)
    sizes = {"q_proj": (hidden, 64), "v_proj": (hidden, 32)}
    weights = {}
    for layer in range(2):
        for name, (inputs, outputs) in sizes.items():
            module = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            weights[f"{module}.lora_A.weight"] = torch.randn(8, inputs)
            weights[f"{module}.lora_B.weight"] = torch.randn(outputs, 8)
    save_file(weights, into / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": [*sizes], "bias": "none"}
    (into / "adapter_config.json").write_text(json.dumps(config))
    return into


def tokenizer() -> Any:
    """Create the checkpoint's tokenizer: a token per byte, no merges."""
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(sorted(ByteLevel.alphabet()))}, merges=[]))
    inner.pre_tokenizer = ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    inner.add_tokens([AddedToken(text, special=False, normalized=False) for text in PLAIN])
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>")
