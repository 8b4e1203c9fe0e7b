"""The rows of all tokens of a model, and which of them learn."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor

from demo_training import chat, harmony
from demo_training.dialogues import dialogues
from demo_training.network.speller import Speller
from responses_app.demo import build
from responses_app.demo.rows import starting_rows

LETTERS, SPACED = 1600, 900
TRAINED_ROWS = 3500


@dataclass
class Vocabulary:
    """Rows for all tokens: those in `trained` learn, the others stay as they started."""

    frozen: Tensor
    trained: Tensor
    where: Tensor
    speller: Speller | None = None

    @classmethod
    def of(cls, spellings: list[bytes], trained: list[int], width: int) -> Vocabulary:
        frozen = torch.from_numpy(starting_rows(spellings, width))
        where = torch.full((len(spellings),), -1, dtype=torch.long)
        where[torch.tensor(trained)] = torch.arange(len(trained))
        return cls(frozen, torch.tensor(trained), where)


def chat_vocabulary(folder: Path, width: int) -> tuple[Vocabulary, Any, list[int]]:
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.exists():
        path.write_text(chat.train_tokenizer(itertools.islice(dialogues(99), 12000), LETTERS, SPACED))
    tokenizer = Tokenizer.from_file(str(path))
    spellings = [(tokenizer.id_to_token(i) or "").replace("Ġ", " ").encode() for i in range(tokenizer.get_vocab_size())]
    everything = list(range(len(spellings)))
    return Vocabulary.of(spellings, everything, width), tokenizer, [i for i in everything if spellings[i].strip().isalpha()]


def harmony_vocabulary(folder: Path, width: int) -> tuple[Vocabulary, None, list[int]]:
    spellings = spellings_of_harmony()
    path = folder / "rows.txt"
    if not path.exists():
        r = Random(7)
        counts = Counter(i for d in itertools.islice(dialogues(99), 12000) for i in harmony.sample(d, r).ids)
        numbers = [i for i, s in enumerate(spellings) if s.isdigit() and s.isascii() and len(s) < 3]
        chosen = {i for i, _ in counts.most_common(TRAINED_ROWS)} | set(numbers) | {harmony.RETURN}
        path.write_text("\n".join(map(str, sorted(chosen))) + "\n")
    trained = [int(line) for line in path.read_text().split()]
    pool = trained + [i for i, s in enumerate(spellings[:60000]) if s.strip().isalpha() and s.isascii()]
    vocabulary = Vocabulary.of(spellings, trained, width)
    vocabulary.speller = Speller(spellings)
    return vocabulary, None, pool


def spellings_of_harmony() -> list[bytes]:
    from responses_app.demo.o200k_files import special_names

    return build.spellings(special_names())
