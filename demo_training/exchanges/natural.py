"""Invented tools asked for in whole sentences, where only the sense of a word tells which argument it is."""

# Lists of phrases read better in long lines than one phrase per line.
# ruff: noqa: E501, SIM905
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from demo_training.exchanges import toolbox, words
from demo_training.exchanges.toolbox import Use
from demo_training.forms import Call, Json, Tool, fill, spin


@dataclass(frozen=True)
class Role:
    """What a part of a request can be: the keys under which tools want it, and how people say it."""

    keys: str
    draw: Callable[[Random], object]
    says: list[str]
    kind: str = "string"
    options: str = ""
    # Said before the noun, as in "a large pizza".
    before: bool = False
    # Belongs to the noun itself, as in "the invoice 77".
    close: bool = False


@dataclass(frozen=True)
class Part:
    role: Role
    key: str
    value: object
    options: list[str] | None


_ROOMS = "kitchen|bedroom|garage|office|bathroom|hall|attic|cellar|library|garden|living room|dining room".split("|")
_UNITS = "hours people steps minutes days nights copies guests persons pieces bottles tickets boxes weeks meters laps pages seats rooms players".split()


def _strange(r: Random) -> str:
    return words.syllables(r) if r.random() < 0.5 else words.english_word(r)


def _name(r: Random) -> str:
    return r.choice([words.name, words.city])(r)


_ROLES = [
    Role("color colour shade paint", lambda r: r.choice(words.COLOURS), ["{v}", "in {v}", "{v}", "with {v}"], before=True),
    Role("size", lambda _: "", [""], options="small medium large,tiny normal huge,S M L XL,short long", before=True),
    Role(
        "type kind style mode",
        lambda _: "",
        ["as {v}", "{v}"],
        options="plain fancy modern,fast slow,hot cold,new used,public private,draft final,single double,indoor outdoor",
        before=True,
    ),
    Role(
        "direction side heading way",
        lambda _: "",
        ["{v}", "to the {v}", "{v}"],
        options="north south east west,left right,up down,left right up down,forward backward",
    ),
    Role(
        "room location area place",
        lambda r: r.choice(_ROOMS) if r.random() < 0.8 else _strange(r),
        ["in the {v}", "in the {v}", "for the {v}"],
    ),
    Role(
        "station location city place venue restaurant hotel store shop stop branch",
        _name,
        ["at {v}", "in {v}", "near {v}", "at {v}"],
    ),
    Role("destination to target_city goal", words.city, ["to {v}"]),
    Role("origin from start source", words.city, ["from {v}"]),
    Role("guest customer person recipient user owner name", words.name, ["for {v}", "with {v}", "for {v}"]),
    Role(
        "date day when weekday",
        lambda r: r.choice([*words.DAYS, "tomorrow", "today", f"2026-{r.randint(1, 12):02d}-{r.randint(10, 28)}"]),
        ["on {v}", "for {v}"],
    ),
    Role(
        "time at hour start_time",
        lambda r: r.choice(
            [f"{r.randint(1, 12)}pm", f"{r.randint(1, 12)}am", f"{r.randint(0, 23)}:{r.randint(10, 59)}", "noon"]
        ),
        ["at {v}"],
    ),
    Role(
        "topping flavor filling extra ingredient material theme sauce side",
        lambda r: r.choice(words.FOODS) if r.random() < 0.6 else _strange(r),
        ["with {v}", "with {v}", "made of {v}"],
    ),
    Role(
        "text title message query topic word phrase content note",
        lambda r: words.phrase(r, 3),
        ["'{v}'", '"{v}"', "saying {v}", "about {v}", ": {v}", "with the text {v}"],
    ),
    Role(
        "id number code reference key name ticket",
        lambda r: words.code(r) if r.random() < 0.7 else _strange(r),
        ["{v}", "{v}", "number {v}", "with the id {v}", "called {v}"],
        close=True,
    ),
    Role(
        "name item object target thing",
        lambda r: _strange(r).capitalize() if r.random() < 0.5 else _strange(r),
        ["{v}", "{v}", "named {v}", "called {v}"],
        close=True,
    ),
]
_COUNT = Role(
    "",
    lambda r: r.randint(2, 12) if r.random() < 0.7 else r.randint(1, 99),
    ["for {v} {u}", "{v} {u}", "for {v} {u}", "with {v} {u}", "({v} {u})"],
    "integer",
)
_LEVEL = Role(
    "level strength speed volume temperature priority brightness power",
    lambda r: r.randint(1, 100),
    ["with {k} {v}", "at {k} {v}", "{k} {v}", "with a {k} of {v}", "to {k} {v}"],
    "integer",
)
_FLAG = Role("silent urgent express gift public notify force quiet insured", lambda r: r.random() < 0.6, [""], "boolean")
_DO = "[Please|Can you|Could you|I want to|I need to|I would like to|I'd like to|Would you|Let's|Now|||||] "
_OPEN = [f"{_DO}{{V}} [a|the|one|my|me a|a new|] {{before}} {{n}} {{close}} {{rest}}[.|!| please|, please.||||]"] * 4 + [
    "I need [a|the|one] {before} {n} {close} {rest}. [{V} it|Please {V} it|]",
    f"{_DO}use {{t}} to {{V}} [a|the] {{before}} {{n}} {{close}} {{rest}}",
]
_BESIDE = [
    f"{_DO}{{V}} {{close}} {{rest}}[.|!| please|]",
    f"{_DO}[use|call|run] [the|] {{t}} [tool|function|] [on|for|with] {{close}} {{rest}}[.|]",
]


def _part(r: Random, role: Role, noun: str, taken: set[str]) -> Part | None:
    options = r.choice(role.options.split(",")).split() if role.options else None
    key = r.choice(role.keys.split() or [""])
    if role.close and r.random() < 0.6:
        key = f"{noun}_{key}".replace(" ", "_") if r.random() < 0.6 else noun.replace(" ", "_")
    if role is _COUNT:
        unit = r.choice(_UNITS)
        key = spin(r, f"[{unit}|{unit}|num_{unit}|count|number_of_{unit}|{unit}_count]")
        options = [unit]
    value = r.choice(options) if role.options and options else role.draw(r)
    return None if key in taken else Part(role, key, value, options)


def _parts(r: Random, noun: str) -> list[Part]:
    pool = r.sample(_ROLES, 3)
    if r.random() < 0.45:
        pool.insert(0, r.choice([_COUNT, _COUNT, _LEVEL]))
    if r.random() < 0.08:
        pool.insert(0, _FLAG)
    out: list[Part] = []
    for role in pool[: r.choices([1, 2, 3], [4, 6, 2])[0]]:
        close = role.close and any(p.role.close for p in out)
        same = {"at", "in the"} & {s.split(" {")[0] for s in role.says} and any(
            "at {v}" in p.role.says or "in the {v}" in p.role.says for p in out
        )
        made = None if close or same else _part(r, role, noun, {p.key for p in out})
        out += [made] if made else []
    return out


def _said(r: Random, p: Part) -> str:
    k = p.key.replace("_", " ")
    if p.role is _FLAG:
        return spin(
            r, f"[with {k} true|{k} = true|and {k}|{k} on]" if p.value else f"[with {k} false|{k} = false|not {k}|{k} off]"
        )
    unit = (p.options or [""])[0]
    return r.choice(p.role.says).format(v=p.value, k=k, u=unit)


def _question(r: Random, verb: str, noun: str, tool: str, parts: list[Part]) -> str:
    before = [p for p in parts if p.role.before and (r.random() < 0.6 or not p.role.says[0])][:1]
    close = [p for p in parts if p.role.close and p not in before]
    rest = [p for p in parts if p not in before and p not in close]
    r.shuffle(rest)
    said = {
        "before": str(before[0].value) if before else "",
        "close": " ".join(_said(r, p) for p in close),
        "rest": spin(
            r,
            r.choice([" ", " ", " ", " and ", ", "]).join(
                _said(r, p) if p.role.says[0] or p.role is _FLAG else f"{p.value} size" for p in rest
            ),
        ),
    }
    templates = _BESIDE + _OPEN if close and not before else _OPEN
    text = (
        " ".join(fill(r, templates, V=verb, n=noun, t=tool, **said).split())
        .replace(" .", ".")
        .replace(" !", "!")
        .replace(" ,", ",")
        .replace(" :", ":")
    )
    return text[:1].upper() + text[1:] if r.random() < 0.9 else text


def _declared(r: Random, name: str, verb: str, noun: str, parts: list[Part], spare: list[Part]) -> Tool:
    properties: Json = {}
    for p in r.sample(parts + spare, len(parts) + len(spare)):
        k = p.key.replace("_", " ")
        says = r.choice(["", "", f"The {k}", f"The {k} of the {noun}", f"{k.capitalize()}"])
        properties[p.key] = toolbox.property_(r, p.role.kind, says, p.options if p.role.options else None)
    describes = fill(
        r,
        [
            "{V} [a|the] {n}[.|]",
            "{V}s [a|the] {n}[.|]",
            "{V} [a|the] {n} for the user",
            "Use this to {v} [a|the] {n}[.|]",
            "{V} {n}",
        ],
        V=verb.capitalize(),
        v=verb,
        n=noun,
    )
    return Tool(name, describes, toolbox.shaped(r, properties, [p.key for p in parts if r.random() < 0.9]))


def natural_use(r: Random) -> Use:
    """A request as people would say it: "rent a red bike at Central for 3 hours"."""
    verb = r.choice(words.VERBS) if r.random() < 0.75 else _strange(r)
    noun = r.choice(words.NOUNS) if r.random() < 0.75 else _strange(r)
    snake = noun.replace(" ", "_")
    name = spin(r, f"[{verb}_{snake}|{verb}_{snake}|{verb}_{snake}|{verb}|{verb}{snake.capitalize()}|{snake}_{verb}]")
    parts = _parts(r, noun)
    spare = [p for p in [_part(r, r.choice(_ROLES), noun, {p.key for p in parts})] if p and r.random() < 0.12]
    required = _declared(r, name, verb, noun, parts, spare)
    calls = (Call(name, {p.key: p.value for p in _ordered(required, parts)}),)
    if spare:
        kept: Json = dict(required.parameters)
        kept["required"] = [p.key for p in parts]
        required = Tool(required.name, required.description, kept)
    return Use(
        required,
        _question(r, verb, noun, name, parts),
        calls,
        (toolbox.result_text(r, toolbox.KINDS[r.choice(["search", "calculator", "reminder", "weather"])], {}),),
    )


def _ordered(tool: Tool, parts: list[Part]) -> list[Part]:
    """Arguments come in the order in which the tool declares them."""
    keys = list(tool.parameters["properties"])
    return sorted(parts, key=lambda p: keys.index(p.key))
