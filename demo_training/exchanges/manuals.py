"""Long system prompts: headings, paragraphs, lists and code about nothing, with which a short question must still be understood."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from demo_training.exchanges import words
from demo_training.forms import fill

SHORTEST, LONGEST = 30, 1100
_SENTENCES = [
    "[You|The user|The agent|The {w}|Each {w}|A {w}|This {w}] [can|must|should|may|will|cannot] {v} [the|a|each|any|] {x}[.| {p}.]",
    "[When|If|After|Before|While] [you|the user|a {w}] {v}[s|] [the|a|] {x}, {v} [the|a] {w} [and|or|then] {v} {p}.",
    "[Do not|Never|Always|Please|Only|Prefer to|Avoid to|Make sure to] {v} [the|a|any|] {x} [for|with|in|from|of|without] {p}.",
    "{X} [is|are|has|means|contains] [the|a|an|] {p}[.|; {p}.|, {p}.|: {p}.| ({p}).]",
    "[For example|Note|Important|Remember|In general|In this case|However], {p} [is|was|has] {p}.",
]


def _sentence(r: Random) -> str:
    verb = r.choice(words.VERBS) if r.random() < 0.6 else words.english_word(r)
    slots = {"w": words.english_word(r), "v": verb, "x": words.phrase(r, 3), "p": words.phrase(r, 6)}
    return fill(r, _SENTENCES, **slots, X=words.phrase(r, 2).capitalize())


def _paragraph(r: Random) -> str:
    return " ".join(_sentence(r) for _ in range(r.randint(1, 5)))


def _list(r: Random) -> str:
    mark = r.choice(["- ", "* ", "1. "])
    return "\n".join(mark + (_sentence(r) if r.random() < 0.6 else words.phrase(r, 6)) for _ in range(r.randint(2, 7)))


def _heading(r: Random) -> str:
    return f"{r.choice(['#', '##', '###', '**'])} {words.phrase(r, 4).capitalize()}"


def _code(r: Random) -> str:
    name, value = words.english_word(r), {words.english_word(r): words.phrase(r, 2) for _ in range(r.randint(1, 4))}
    lines = [f"`{name}_{words.english_word(r)}` {words.phrase(r, 4)}", f"<{name}>{words.phrase(r, 5)}</{name}>"]
    return r.choice([*lines, f"```\n{name} --{words.english_word(r)} {words.code(r)}\n```", json.dumps(value)])


_BLOCKS: list[tuple[int, Callable[[Random], str]]] = [(5, _paragraph), (3, _list), (2, _heading), (1, _code)]


def manual(r: Random) -> str:
    """Return a text of between SHORTEST and LONGEST words, most often a short one."""
    wanted = int(SHORTEST * (LONGEST / SHORTEST) ** r.random())
    blocks: list[str] = []
    length = 0
    while length < wanted:
        block = r.choices([make for _, make in _BLOCKS], [weight for weight, _ in _BLOCKS])[0](r)
        blocks.append(block)
        length += len(block.split())
    return "\n\n".join(blocks)
