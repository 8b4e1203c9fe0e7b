"""Opens the checkpoints of families once per session, and parses outputs to items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from responses_app.dialects.base import Turn
from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.protocol.deltas import Arguments, Call, Delta, ReasoningDelta, TextDelta
from tests.support.dialects.families.cases import TOOLS, Item, OutputCase, cut_case
from tests.support.dialects.families.checkpoint_folder import write_checkpoint
from tests.support.dialects.families.family_format import FamilyFormat
from tests.support.dialects.families.formats.registry import FAMILIES
from tests.support.dialects.open_dialect import open_dialect
from tests.support.dialects.parser_driver import parse_chunks, turn


class OpenFamily:
    """Checkpoint of a family, opened as `bin/serve --model` opens it."""

    def __init__(self, family: FamilyFormat, folder: Path) -> None:
        self.format = family
        self.folder = folder
        self._parsed: dict[str, list[Delta]] = {}
        write_checkpoint(family, folder)

    @cached_property
    def dialect(self) -> ChatDialect:
        """Open the checkpoint without naming a parser."""
        opened = open_dialect(str(self.folder))
        assert isinstance(opened, ChatDialect)
        return opened

    @cached_property
    def tokenizer(self) -> Any:
        """Open the tokenizer with transformers."""
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(str(self.folder))

    def tokens(self, case: OutputCase) -> list[int]:
        """Encode the output of a case, with the end of the turn."""
        return self.dialect.vocabulary.encode(case.output + self.format.eos)

    def letters(self, case: OutputCase) -> list[int]:
        """Encode the output of a case with a token per byte, apart from the added tokens."""
        tokenizer = self.tokenizer.backend_tokenizer
        added = tokenizer.get_added_tokens_decoder()
        return [
            part
            for token in self.tokens(case)
            for part in ([token] if token in added else map(tokenizer.token_to_id, tokenizer.id_to_token(token)))
        ]

    def parse(self, case: OutputCase, output: Sequence[int], sizes: Iterable[int] = ()) -> list[Delta]:
        """Parse an output in chunks of the given sizes, the rest in a single chunk."""
        return parse_chunks(self.dialect, self.turn(case), output, sizes)

    def parse_singly(self, case: OutputCase) -> list[Delta]:
        """Parse the whole output of a case token by token; every case is parsed once."""
        if case.name not in self._parsed:
            tokens = self.tokens(case)
            self._parsed[case.name] = self.parse(case, tokens, [1] * len(tokens))
        return self._parsed[case.name]

    @cached_property
    def cuts(self) -> dict[str, list[tuple[str, ...]]]:
        """Return the items of every cut of the longest output, by the text before the cut."""
        case = cut_case(self.format)
        tokens = self.tokens(case)
        return {
            self.dialect.token_text(tokens[:length]): texts_of(self.parse(case, tokens[:length]))
            for length in range(len(tokens))
        }

    def turn(self, case: OutputCase) -> Turn:
        """Return the turn whose answer is the output of a case."""
        return turn(tools=TOOLS if self.format.has_calls else (), effort="none" if case.is_quiet else None)


class OpenFamilies:
    """Checkpoints of families within `folder`, each written when it is first used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, OpenFamily] = {}

    def __getitem__(self, name: str) -> OpenFamily:
        if name not in self._open:
            (self._folder / name).mkdir()
            self._open[name] = OpenFamily(FAMILIES[name], self._folder / name)
        return self._open[name]


def items_of(deltas: Iterable[Delta]) -> list[Item]:
    """Collect deltas to items, arguments as JSON. White space at the ends of a text does not count."""
    return [("call", item[1], _json(item[2])) if item[0] == "call" else item for item in texts_of(deltas)]


def texts_of(deltas: Iterable[Delta]) -> list[tuple[str, ...]]:
    """Collect deltas to items, arguments as text."""
    items: list[list[str]] = []
    for delta in deltas:
        if isinstance(delta, ReasoningDelta | TextDelta):
            items.append(["reasoning" if isinstance(delta, ReasoningDelta) else "text", delta.text.strip()])
        elif isinstance(delta, Call):
            items.append(["call", delta.name, ""])
        elif isinstance(delta, Arguments):
            items[-1][2] += delta.text
    return [tuple(item) for item in items]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
