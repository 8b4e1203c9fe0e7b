"""Writes a tiny random Idefics3 checkpoint, which accepts images and else the same as a model of texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

IMAGE, FAKE, GLOBAL, END = "<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"
SPECIAL = ("<|endoftext|>", "<|im_start|>", END, IMAGE, FAKE, GLOBAL, "<|stop|>")
PLAIN = ("<think>", "</think>", "<tool_call>", "</tool_call>")
MAX_MODEL_LEN = 512
SIDE, PATCH, SCALE = 64, 16, 2
# Number of tokens of the image itself, and with the markers around it.
PATCHES = (SIDE // PATCH // SCALE) ** 2
IMAGE_TOKENS = PATCHES + 3
# Like the template of the published models: content is a list of parts, and tools are not supported.
TEMPLATE = (
    "<|im_start|>{% for message in messages %}{{ message['role'] | capitalize }}:"
    "{% for part in message['content'] %}{% if part['type'] == 'text' %} {{ part['text'] }}"
    "{% elif part['type'] == 'image' %}<image>{% endif %}{% endfor %}<end_of_utterance>\n"
    "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)


def write(into: Path) -> Path:
    """Write a checkpoint directory: a token per byte, then SPECIAL and PLAIN; about 300,000 parameters."""
    import torch
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration

    tokens = tokenizer()
    tokens.save_pretrained(into)
    torch.manual_seed(11)
    config = Idefics3Config(
        text_config={
            "model_type": "llama",
            "vocab_size": 512,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "max_position_embeddings": MAX_MODEL_LEN,
            "initializer_range": 0.2,
            "pad_token_id": 0,
        },
        vision_config={
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": SIDE,
            "patch_size": PATCH,
            "initializer_range": 0.2,
        },
        scale_factor=SCALE,
        image_token_id=tokens.convert_tokens_to_ids(IMAGE),
        pad_token_id=tokens.convert_tokens_to_ids("<|endoftext|>"),
        eos_token_id=tokens.convert_tokens_to_ids(END),
        dtype="bfloat16",
    )
    Idefics3ForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(into)
    for name, content in _files(tokens).items():
        (into / name).write_text(json.dumps(content))
    return into


def _files(tokens: Any) -> dict[str, Any]:
    size = {"longest_edge": SIDE}
    pictures = {
        "image_processor_type": "Idefics3ImageProcessorPil",
        "do_image_splitting": False,
        "size": size,
        "max_image_size": size,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    return {
        "preprocessor_config.json": {"processor_class": "Idefics3Processor", **pictures},
        "processor_config.json": {"processor_class": "Idefics3Processor", "image_seq_len": PATCHES},
        "generation_config.json": {"eos_token_id": tokens.convert_tokens_to_ids(END)},
    }


def tokenizer() -> Any:
    """Create the checkpoint's tokenizer."""
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(sorted(ByteLevel.alphabet()))}, merges=[]))
    inner.pre_tokenizer = ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    inner.add_tokens([AddedToken(text, special=False, normalized=False) for text in PLAIN])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=END, pad_token="<|endoftext|>", bos_token="<|im_start|>", chat_template=TEMPLATE
    )
