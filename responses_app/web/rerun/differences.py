"""Differences of two turns by layer: request, words, items, arguments of calls, and prompt tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final, TypeAlias

from responses_app.models import Response
from responses_app.runs import manager
from responses_app.store.log.rows.round_prompts import load_rounds
from responses_app.tools.recorded.calls import CALL_TYPES, call_key
from responses_app.web.render.sanitize import hide_url_queries, visible
from responses_app.web.rerun.editors import only_text
from responses_app.web.rerun.turns import Turn, is_client_call
from responses_app.web.response.selection.prompt_rounds import sent_rounds

# Limits of what is compared: `SequenceMatcher` takes quadratic time in the worst case.
MAX_WORDS: Final = 2_000
MAX_TOKENS: Final = 2_000
MAX_CALLS: Final = 20
MAX_CELL_CHARS: Final = 600
# Characters before the first difference of long values.
CONTEXT_CHARS: Final = 80
# Words on each side of a change; longer equal passages are shortened.
CONTEXT_WORDS: Final = 24
REQUEST_FIELDS: Final = (
    *("model", "instructions", "temperature", "top_p", "presence_penalty", "frequency_penalty", "max_output_tokens"),
    *("reasoning", "text", "tool_choice", "tools", "parallel_tool_calls", "truncation"),
)
WORD: Final = re.compile(r"\s+|\w+|[^\w\s]")

# `same`, `del` or `ins`, and the text.
Change: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PromptDifference:
    """Difference of the first prompts that the models got. The first `shared` tokens are the same; `changes` are the texts behind."""

    lengths: tuple[int, int]
    shared: int
    changes: Sequence[Change]

    @property
    def is_same(self) -> bool:
        """Return whether the prompts are equal."""
        return self.lengths[0] == self.lengths[1] == self.shared


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences by layer. An empty layer has none; `prompt` is None if a prompt was not stored."""

    request: Sequence[tuple[str, str, str]]
    words: Sequence[Change]
    items: Sequence[Change]
    arguments: Sequence[tuple[str, Sequence[Change]]]
    prompt: PromptDifference | None


def differences(original: Turn, run: Turn) -> Differences:
    """Compare two turns."""
    return Differences(
        _request(original, run),
        _changes(WORD.findall(_text(original))[:MAX_WORDS], WORD.findall(_text(run))[:MAX_WORDS]),
        _changes(_titles(original), _titles(run)),
        list(_arguments(original, run)),
        _prompt(original.steps[0].row, run.steps[0].row),
    )


def _request(original: Turn, run: Turn) -> list[tuple[str, str, str]]:
    first, second = original.steps[0].snapshot, run.steps[0].snapshot
    names = [name for name in REQUEST_FIELDS if first.get(name) != second.get(name)]
    inputs = _input_text(original), _input_text(run)
    changed_input = [("input", *_cells(*inputs))] if inputs[0] != inputs[1] else []
    return [*((name, *_cells(first.get(name), second.get(name))) for name in names), *changed_input]


def _input_text(turn: Turn) -> str:
    """Return the own input of the first response, without the ids of the items."""
    items = [{key: value for key, value in item.items() if key not in ("id", "status")} for item in turn.steps[0].input]
    return "\n".join(only_text(item) or json.dumps(item, ensure_ascii=False) for item in items)


def _cells(*values: Any) -> tuple[str, str]:
    """Return the texts of two values. Of long texts with the same beginning these are the parts around the first difference."""
    first, second = (_cell_text(value) for value in values)
    if max(len(first), len(second)) <= MAX_CELL_CHARS:
        return visible(first), visible(second)
    pairs = enumerate(zip(first, second, strict=False))
    shared = next((place for place, (a, b) in pairs if a != b), min(len(first), len(second)))
    start = max(shared - CONTEXT_CHARS, 0)
    return _cut(first, start), _cut(second, start)


def _cell_text(value: Any) -> str:
    return value if isinstance(value, str) else hide_url_queries(json.dumps(value, ensure_ascii=False))


def _cut(text: str, start: int) -> str:
    end = start + MAX_CELL_CHARS
    return f"{'…' if start else ''}{visible(text[start:end])}{'…' if len(text) > end else ''}"


def _text(turn: Turn) -> str:
    """Return the texts of all messages of the output."""
    items = [item for step in turn.steps for item in step.output if item["type"] == "message"]
    parts = [part for item in items for part in item.get("content") or ()]
    return "\n\n".join(str(part.get("text") or part.get("refusal") or "") for part in parts)


def _titles(turn: Turn) -> list[str]:
    return [_title(item) for step in turn.steps for item in step.output]


def _title(item: Mapping[str, Any]) -> str:
    names = [name for name in (item.get("server_label"), item.get("name")) if name]
    return " ".join([str(item["type"]), *map(str, names)]) + "\n"


def _arguments(original: Turn, run: Turn) -> Iterator[tuple[str, Sequence[Change]]]:
    """Yield the changes of each pair of calls at the same place, without equal pairs."""
    first, second = _calls(original), _calls(run)
    for place in range(min(max(len(first), len(second)), MAX_CALLS)):
        a, b = (calls[place] if place < len(calls) else ("", []) for calls in (first, second))
        if a != b:
            name = a[0] if a[0] == b[0] else f"{a[0] or 'no call'} → {b[0] or 'no call'}"
            yield visible(name), _changes(a[1], b[1])


def _calls(turn: Turn) -> list[tuple[str, list[str]]]:
    """Return name and lines of the arguments of each call."""
    items = [item for step in turn.steps for item in step.output]
    keys = [call_key(item) for item in items if item["type"] in CALL_TYPES - {"mcp_list_tools"} or is_client_call(item)]
    return [(key.name, _lines(key.arguments)) for key in keys]


def _lines(text: str) -> list[str]:
    with suppress(ValueError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return [f"{line}\n" for line in text.splitlines()]


def _prompt(a: Response, b: Response) -> PromptDifference | None:
    rounds = [sent_rounds(row, load_rounds(row.pk)) for row in (a, b)]
    if not all(rounds):
        return None
    first, second = (list(pairs[0][0].prompt) for pairs in rounds)
    shared = next((n for n, (x, y) in enumerate(zip(first, second, strict=False)) if x != y), min(len(first), len(second)))
    if a.model != b.model:
        # Token ids of different tokenizers cannot be compared, but their texts can.
        texts = [WORD.findall(_decode(row, tokens[:MAX_TOKENS])) for row, tokens in ((a, first), (b, second))]
        return PromptDifference((len(first), len(second)), 0, _changes(*texts))
    left, right = first[shared : shared + MAX_TOKENS], second[shared : shared + MAX_TOKENS]
    changes: list[Change] = []
    for tag, a1, a2, b1, b2 in SequenceMatcher(None, left, right).get_opcodes():
        if tag == "equal":
            changes.append(("same", _shortened(WORD.findall(_decode(a, left[a1:a2])))))
            continue
        changes += [
            (kind, _decode(row, tokens)) for kind, row, tokens in (("del", a, left[a1:a2]), ("ins", b, right[b1:b2])) if tokens
        ]
    return PromptDifference((len(first), len(second)), shared, changes)


def _decode(row: Response, tokens: Sequence[int]) -> str:
    """Return the text of the tokens; the numbers if the server does not serve the model."""
    served = manager.current().served.get(row.model)
    if served is None or served.dialect is None:
        return " ".join(map(str, tokens))
    return visible(served.dialect.token_text(list(tokens)))


def _changes(first: Sequence[str], second: Sequence[str]) -> list[Change]:
    """Return the changes from `first` to `second`, empty if both are equal."""
    if list(first) == list(second):
        return []
    changes: list[Change] = []
    for tag, a1, a2, b1, b2 in SequenceMatcher(None, first, second).get_opcodes():
        if tag == "equal":
            changes.append(("same", _shortened(first[a1:a2])))
            continue
        sides = (("del", first[a1:a2]), ("ins", second[b1:b2]))
        changes += [(kind, visible("".join(parts))) for kind, parts in sides if parts]
    return changes


def _shortened(words: Sequence[str]) -> str:
    if len(words) <= 2 * CONTEXT_WORDS:
        return visible("".join(words))
    return visible(f"{''.join(words[:CONTEXT_WORDS])} … {''.join(words[-CONTEXT_WORDS:])}")
