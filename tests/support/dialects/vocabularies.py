"""Tokenizers of three kinds: a token per byte, the demo model's, and pieces as SentencePiece has."""

from __future__ import annotations

from functools import cache

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

from responses_app.dialects.text.tokenizer import TokenizerAdapter
from tests.support.dialects.parser_driver import byte_vocabulary, demo_vocabulary


@cache
def spaced_vocabulary() -> TokenizerAdapter:
    """Create a SentencePiece-style tokenizer: a mark for the space, bytes for missing characters."""
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "é", "▁a"]
    tokenizer = Tokenizer(
        models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=[("▁", "a")], byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken("</s>", special=True, normalized=False)])
    return TokenizerAdapter(tokenizer)


VOCABULARIES = {"bytes": byte_vocabulary, "demo": demo_vocabulary, "spaced": spaced_vocabulary}
