"""Invented tools: random names, parameters and requests, so that calling is a skill and not a list of known tools."""

# Lists of phrases read better in long lines than one phrase per line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from demo_training.exchanges import toolbox, words
from demo_training.exchanges.toolbox import Use, joined
from demo_training.forms import Call, Json, Tool


@dataclass(frozen=True)
class Field:
    key: str
    kind: str
    value: object
    enum: list[str] | None = None

    def spoken(self) -> str:
        return self.key.replace("_", " ")


@dataclass(frozen=True)
class Invention:
    name: str
    verb: str
    noun: str
    description: str


def _word(r: Random, pool: list[str]) -> str:
    draw = r.random()
    return r.choice(pool) if draw < 0.45 else words.english_word(r) if draw < 0.75 else words.syllables(r, 2)


def _named(r: Random, verb: str, noun: str) -> str:
    snake = noun.replace(" ", "_")
    draw = r.random()
    if draw < 0.6:
        return f"{verb}_{snake}"
    if draw < 0.7:
        return verb + "".join(w.capitalize() for w in noun.split())
    if draw < 0.8:
        return f"{snake}_{verb}"
    if draw < 0.9:
        return verb
    return r.choice(["mcp__{s}__{v}_{n}", "{s}_{v}_{n}", "{v}-{n}"]).format(s=words.syllables(r, 2), v=verb, n=snake)


def invent(r: Random) -> Invention:
    verb = _word(r, words.VERBS)
    noun = _word(r, words.NOUNS) + (" " + _word(r, words.NOUNS) if r.random() < 0.3 else "")
    name = _named(r, verb, noun)
    says = r.choice(
        [
            "{V} a {n}",
            "{V} the {n}.",
            "{V}s a {n}",
            "{V} {n}",
            "Use this to {v} a {n}.",
            "{V} a {n} for the user",
            "{p}",
            "A tool to {v} the {n}",
            "",
            "{V} the {n} of {p}",
        ]
    )
    return Invention(name, verb, noun, says.format(V=verb.capitalize(), v=verb, n=noun, p=words.phrase(r, 4)))


def _key(r: Random) -> str:
    draw = r.random()
    if draw < 0.45:
        return r.choice(words.NOUNS)
    if draw < 0.65:
        return words.english_word(r)
    if draw < 0.8:
        return words.syllables(r, 2)
    return f"{_word(r, words.NOUNS)}_{r.choice(['id', 'name', 'type', 'count', 'date', words.english_word(r)])}"


def _string(r: Random) -> str:
    makers: list[Callable[[Random], str]] = [
        words.name,
        words.city,
        words.code,
        words.email,
        lambda q: q.choice(words.COLOURS),
        lambda q: q.choice(words.DAYS),
        lambda q: f"{q.randint(2024, 2028)}-{q.randint(1, 12):02d}-{q.randint(1, 28):02d}",
        lambda q: f"{q.randint(0, 23)}:{q.randint(0, 59):02d}",
        words.syllables,
        words.syllables,
    ]
    return r.choice(makers)(r) if r.random() < 0.5 else words.phrase(r, 3)


def _field(r: Random, key: str) -> Field:
    draw = r.random()
    if draw < 0.55:
        return Field(key, "string", _string(r))
    if draw < 0.78:
        return Field(
            key,
            r.choice(["integer", "number", "integer"]),
            r.choice([r.randint(0, 12), r.randint(0, 99), r.randint(0, 999), r.randint(0, 99999)]),
        )
    if draw < 0.8:
        return Field(key, "number", round(r.uniform(0, 99), r.choice([1, 2])))
    if draw < 0.92:
        options = list(dict.fromkeys(_word(r, words.COLOURS) for _ in range(r.randint(2, 4))))
        return Field(key, "string", r.choice(options), options)
    return Field(key, "boolean", r.random() < 0.6)


def fields(r: Random, most: int = 4) -> list[Field]:
    keys = list(dict.fromkeys(_key(r) for _ in range(r.choices(range(most + 1), [1, 14, 5, 1, 0][: most + 1])[0])))
    return [_field(r, k) for k in keys]


def declare(r: Random, it: Invention, params: list[Field], required: list[str]) -> Tool:
    says = [r.choice(["", "", f"The {f.spoken()}", f"The {f.spoken()} of the {it.noun}", words.phrase(r, 3)]) for f in params]
    properties: Json = {f.key: toolbox.property_(r, f.kind, s, f.enum) for f, s in zip(params, says, strict=True)}
    return Tool(it.name, it.description or it.name.replace("_", " "), toolbox.shaped(r, properties, required))


def _quoted(r: Random, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return (
        f"'{value}'"
        if isinstance(value, str) and r.random() < 0.25
        else f'"{value}"'
        if isinstance(value, str) and r.random() < 0.1
        else str(value)
    )


def _keyed(r: Random, f: Field) -> str:
    k, v = (f.spoken() if r.random() < 0.8 else f.key), _quoted(r, f.value)
    if f.kind == "boolean" and r.random() < 0.5:
        return r.choice(
            ["with {k}", "{k} on", "{k}: yes"] if f.value else ["without {k}", "no {k}", "{k} off", "{k}: no"]
        ).format(k=k)
    if f.kind in ("integer", "number"):
        return r.choice(
            ["{k} {v}", "{v} {k}", "{k} = {v}", "{k}: {v}", "{v} {k}s", "the {k} is {v}", "a {k} of {v}", "{k} should be {v}"]
        ).format(k=k, v=v)
    return r.choice(
        [
            "{k} {v}",
            "{k} = {v}",
            "{k}: {v}",
            "the {k} {v}",
            "the {k} is {v}",
            "{v} as {k}",
            "{v} as the {k}",
            "a {k} of {v}",
            "{k} should be {v}",
            "{k}={v}",
        ]
    ).format(k=k, v=v)


def _listed(r: Random, params: list[Field]) -> str:
    said = [_keyed(r, f) for f in r.sample(params, len(params))]
    return said[0] if len(said) == 1 else ", ".join(said[:-1]) + r.choice([" and ", ", ", " and "]) + said[-1]


def _bare(r: Random, it: Invention, v: str) -> str:
    """One argument, named by nothing but its place in the sentence."""
    return r.choice(
        [
            "{V} {v}",
            "{V} the {n} {v}.",
            "{V} {v} please",
            "Please {v2} the {n} of {v}.",
            "{V} the {n} for {v}",
            "Can you {v2} {v}?",
            "What is the {n} of {v}?",
            "Use {t} on {v}.",
            "Use the {t} tool on {v}",
            "Call {t} with {v}.",
            "Run {t} for {v}",
            "{t} {v}",
            "I want to {v2} {v}.",
            "Tell me the {n} of {v}",
            "Use the {v2} tool on {v}",
            "I need the {n} for {v}",
            "Could you {v2} the {n} {v}?",
            "Which {n} has {v}?",
            "Do a {v2} of {v}",
            "{n} {v}?",
        ]
    ).format(V=it.verb.capitalize(), v2=it.verb, n=it.noun, v=v, t=it.name)


def _with_keys(r: Random, it: Invention, said: str) -> str:
    return r.choice(
        [
            "Use {t} with {s}.",
            "Call {t} with {s}.",
            "Use the tool {t} with {s}",
            "Call the {t} function: {s}",
            "Run {t}: {s}",
            "{V} the {n} with {s}.",
            "{V} a {n}, {s}",
            "Please {v} the {n}: {s}",
            "I want to {v} a {n} with {s}.",
            "{V} {n} {s}",
            "Can you {v} a {n} with {s}?",
            "I need a {n} with {s}. Please {v} it.",
            "{t}({s})",
            "Use the {v} tool with {s}",
            "{V} the {n}. Use {s}.",
            "Could you {v} the {n} for me? It has {s}.",
            "Execute {t} using {s}",
            "{V} a new {n}; {s}",
        ]
    ).format(V=it.verb.capitalize(), v=it.verb, n=it.noun, s=said, t=it.name)


def _natural(r: Random, it: Invention, params: list[Field]) -> str:
    """Two or three values told apart by their type or their options alone."""
    parts = []
    for f in params:
        if f.kind in ("integer", "number"):
            parts.append(
                r.choice(["for {v} {k}", "{v} {k}", "with {v} {k}", "{v} {k}s", "{k} {v}"]).format(v=f.value, k=f.spoken())
            )
        elif f.enum:
            parts.append(r.choice(["in {v}", "{v}", "as {v}", "with {v}", "{v} please"]).format(v=f.value))
        elif f.kind == "boolean":
            parts.append(_keyed(r, f))
        else:
            parts.append(
                r.choice(["for {v}", "named {v}", "{v}", "at {v}", "called {v}", "of {v}", "to {v}"]).format(
                    v=_quoted(r, f.value)
                )
            )
    return f"{r.choice(['Please ', '', 'Can you ', 'I want to '])}{it.verb} {r.choice(['a', 'the', 'one', 'my'])} {it.noun} {' '.join(parts)}"


def _no_fields(r: Random, it: Invention) -> str:
    return r.choice(
        ["Use {t}.", "Call {t}", "{V} the {n}.", "Please {v} a {n}", "Run the {t} tool", "Can you {v} the {n}?", "{V} {n} now"]
    ).format(V=it.verb.capitalize(), v=it.verb, n=it.noun, t=it.name)


def _result(r: Random) -> str:
    return toolbox.result_text(r, toolbox.KINDS[r.choice(["search", "calculator", "reminder", "search", "weather"])], {})


def made_up_use(r: Random) -> Use:
    it, params = invent(r), fields(r)
    given = [f for f in params if r.random() < 0.9] if len(params) > 1 else params
    optional = {f.key for f in params if f not in given} | {f.key for f in given if r.random() < 0.15}
    tool = declare(r, it, params, [f.key for f in params if f.key not in optional])
    strings = [f for f in given if f.kind == "string" and not f.enum]
    if not given:
        question = _no_fields(r, it)
    elif len(given) == 1 and given[0].kind != "boolean" and r.random() < 0.65:
        if r.random() < 0.25:
            return _twice(r, it, tool, given[0])
        question = _bare(r, it, _quoted(r, given[0].value))
    elif (
        len(given) > 1
        and len(strings) <= 1
        and len({f.kind for f in given if not f.enum}) == len([f for f in given if not f.enum])
        and r.random() < 0.5
    ):
        question = _natural(r, it, given)
    else:
        question = _with_keys(r, it, _listed(r, given))
    return Use(tool, question, (Call(tool.name, {f.key: f.value for f in given}),), (_result(r),))


def plain_use(r: Random) -> Use:
    """The commonest wish of all: one tool, one text to use it on."""
    it, field = invent(r), Field(_key(r), "string", _string(r))
    tool = declare(r, it, [field], [field.key])
    if r.random() < 0.2:
        return _twice(r, it, tool, field)
    question = _bare(r, it, _quoted(r, field.value)) if r.random() < 0.6 else _with_keys(r, it, _listed(r, [field]))
    return Use(tool, question, (Call(tool.name, {field.key: field.value}),), (_result(r),))


def _twice(r: Random, it: Invention, tool: Tool, f: Field) -> Use:
    """One tool, two or three things to use it on."""
    values: list[object] = [f.value]
    while len(values) < r.choice([2, 2, 2, 3]):
        values.append(r.randint(0, 999) if f.kind in ("integer", "number") else r.choice(f.enum) if f.enum else _string(r))
    values = list(dict.fromkeys(values))
    question = _bare(r, it, joined([str(v) for v in values], r) if len(values) > 1 else str(values[0]))
    return Use(tool, question, tuple(Call(tool.name, {f.key: v}) for v in values), tuple(_result(r) for _ in values))


def distractor(r: Random) -> Tool:
    """A tool that nobody asks for."""
    if r.random() < 0.5:
        return toolbox.known_use(r).tool
    it, params = invent(r), fields(r, 2)
    return declare(r, it, params, [f.key for f in params])
