"""The same dialogue about something else: what a call copies from the question becomes words of the whole vocabulary."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import replace
from random import Random

from demo_training.forms import Call, Dialogue, Json, Result, Say, Turn, User
from responses_app.demo import o200k

_WORD = re.compile(r"[A-Za-z]{3,}")
SHARE, LONG = 0.5, 0.3
# Tokens from here on are mostly of other scripts and of program texts.
_COMMON, _FREQUENT = 110_000, 30_000


@functools.cache
def _words() -> list[str]:
    """Words of gpt-oss's vocabulary, of all languages in Latin letters."""
    return [t[1:].decode() for t in o200k.pieces()[:_COMMON] if re.fullmatch(rb" [A-Za-z][a-z]{2,}", t)]


@functools.cache
def _ends() -> list[str]:
    """What long words go on with: these take more than one token, and the second has to be found again as well."""
    return [t.decode() for t in o200k.pieces()[:_FREQUENT] if re.fullmatch(rb"[a-z]{3,7}", t)]


def _like(r: Random, old: str) -> str:
    new = r.choice(_words()) + (r.choice(_ends()) if r.random() < LONG else "")
    return new.upper() if old.isupper() else new.capitalize() if old[0].isupper() else new.lower()


def _changes(r: Random, dialogue: Dialogue) -> dict[str, str]:
    """Words that occur in what is asked as often as in what is called with, and in no declaration of a tool."""
    calls = [c for t in dialogue.turns if isinstance(t, Say) for c in t.calls]
    called = _WORD.findall(" ".join(v for c in calls for v in c.arguments.values() if isinstance(v, str)))
    asked = _WORD.findall(" ".join(t.text for t in dialogue.turns if isinstance(t, User)))
    declared = json.dumps([t.schema() for t in dialogue.tools])
    return {w: _like(r, w) for w in sorted(set(called)) if asked.count(w) == called.count(w) and w not in declared}


def renamed(r: Random, dialogue: Dialogue) -> Dialogue:
    """One that calls tools, changed now and then; any other as it is."""
    changes = _changes(r, dialogue) if dialogue.tools and r.random() < SHARE else {}
    if not changes:
        return dialogue
    pattern = re.compile(r"(?<![A-Za-z])(" + "|".join(map(re.escape, changes)) + r")(?![A-Za-z])")

    def text(old: str) -> str:
        return pattern.sub(lambda found: changes[found[1]], old)

    def arguments(old: Json) -> Json:
        return {k: text(v) if isinstance(v, str) else v for k, v in old.items()}

    def turn(old: Turn) -> Turn:
        if isinstance(old, Say):
            calls = tuple(Call(c.name, arguments(c.arguments)) for c in old.calls)
            return replace(old, think=text(old.think), text=text(old.text), calls=calls)
        return Result(old.name, text(old.text)) if isinstance(old, Result) else User(text(old.text))

    return replace(dialogue, turns=[turn(t) for t in dialogue.turns])
