"""Checkpoint folder of a family, without weights: a small byte-level tokenizer, chat template and configuration."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.support.dialects.families.cases import CORPUS
from tests.support.dialects.families.family_format import FamilyFormat


def write_checkpoint(family: FamilyFormat, folder: Path) -> Path:
    """Write the files of a checkpoint."""
    tokenizer = Tokenizer.from_str(_words().to_str())
    listed = [token for token in (family.bos, family.eos, *family.special) if token]
    tokenizer.add_special_tokens([_token(each, special=True) for each in dict.fromkeys((*listed, *family.unlisted))])
    tokenizer.add_tokens([_token(each, special=False) for each in family.plain])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(_tokenizer_config(family, listed)))
    (folder / "chat_template.jinja").write_text(family.template)
    config = {"model_type": family.model_type, "eos_token_id": tokenizer.token_to_id(family.eos)}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def _tokenizer_config(family: FamilyFormat, listed: list[str]) -> dict[str, object]:
    names = {"bos_token": family.bos, "eos_token": family.eos}
    more = [token for token in dict.fromkeys(listed) if token not in names.values()]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 8192,
        "additional_special_tokens": more,
        **{name: token for name, token in names.items() if token},
    }


def _token(text: str, *, special: bool) -> AddedToken:
    return AddedToken(text, special=special, normalized=False)


@cache
def _words() -> Tokenizer:
    """Train a tokenizer in which common words and runs of punctuation are single tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False))
    return tokenizer
