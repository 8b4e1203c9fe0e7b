"""Writes small checkpoints: files of any kind, tokenizers with a token per byte, and Mistral's tekken.json."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

MISTRAL_TOKENS = [
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
]
# Special tokens by the version of the tokenizer.
TEKKEN_TOKENS = {
    "v7": MISTRAL_TOKENS,
    "v11": [*MISTRAL_TOKENS, "[ARGS]", "[CALL_ID]"],
    "v13": [*MISTRAL_TOKENS, "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"],
}


def write_files(folder: Path, **files: Any) -> Path:
    """Write files into `folder`; `__` in a keyword stands for a slash and the last `_` for a dot."""
    for name, content in files.items():
        path = folder / ".".join(name.replace("__", "/").rsplit("_", 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def byte_tokenizer_json(*special: str) -> str:
    """Return a tokenizer.json with a token per byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={char: index for index, char in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    return str(tokenizer.to_str())


def tekken_json(version: str) -> dict[str, Any]:
    """Return a tekken.json of a version: a token per byte, some merges, and the special tokens of the version."""
    special = TEKKEN_TOKENS[version]
    tokens = [bytes([byte]) for byte in range(256)] + [b"th", b"the", b" th", b"er", b"\xc3\xa5", b"  "]
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None} for rank, token in enumerate(tokens)
    ]
    return {
        "config": {
            "pattern": r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            "num_vocab_tokens": len(tokens),
            "default_vocab_size": len(tokens) + len(special),
            "default_num_special_tokens": len(special),
            "version": version,
        },
        "vocab": vocab,
        "special_tokens": [{"rank": rank, "token_str": text, "is_control": True} for rank, text in enumerate(special)],
    }
