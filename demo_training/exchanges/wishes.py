"""Short wishes in which the thing itself stands where the tool has a word for its kind: "Draw a triangle" for `draw_shape(shape)`."""

# Lists of phrases read better in long lines than one phrase per line.
# ruff: noqa: SIM905
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from demo_training.exchanges import toolbox, words
from demo_training.exchanges.toolbox import Use
from demo_training.forms import Call, Json, Tool, fill, spin


@dataclass(frozen=True)
class Rest:
    """What follows the thing: the keys under which tools want it, how people say it, and what it can be."""

    keys: str
    says: str
    draw: Callable[[Random], str]


_ROOMS = "kitchen bedroom garage office bathroom hall attic cellar library garden basement yard cabin tent lobby".split()
_RESTS = [
    Rest(
        "room location place area where",
        "[in|in|at] the {v}",
        lambda r: r.choice(_ROOMS) if r.random() < 0.4 else words.english_word(r),
    ),
    Rest(
        "destination to target environment receiver",
        "to [the|] {v}",
        lambda r: words.english_word(r) if r.random() < 0.6 else words.city(r),
    ),
    Rest(
        "recipient person user customer event occasion purpose",
        "for [the|] {v}",
        lambda r: words.name(r) if r.random() < 0.5 else words.english_word(r),
    ),
    Rest(
        "language target_language city town",
        "[to|in|into] {v}",
        lambda r: r.choice(words.LANGUAGES) if r.random() < 0.6 else words.city(r),
    ),
    Rest(
        "time when day date",
        "[at|on] {v}",
        lambda r: r.choice([*words.DAYS, "noon", f"{r.randint(1, 12)}pm", f"{r.randint(1, 12)}am"]),
    ),
    Rest(
        "tool material color colour ingredient",
        "[with|in|using] {v}",
        lambda r: r.choice(words.COLOURS) if r.random() < 0.4 else words.english_word(r),
    ),
]
_UNITS = "bottles boxes cups pieces bags kilos slices packs glasses bunches liters grams".split()
_TIMES = "minutes hours days seconds weeks".split()
_DO = "[Please|Can you|Could you|I want to|I need to|I'd like to|Let's|Now|||||||] "
_ONE = [f"{_DO}{{V}} [the|the|a|my|some||] {{x}}{{rest}}[.|!| please|, please| now|||]"] * 5 + [
    f"{_DO}{{V}} the {{n}} [called|named||] {{x}}{{rest}}",
    f"{_DO}{{V}} {{x}} as [the|] {{n}}{{rest}}",
    f"{_DO}{{V}} [a|the] {{n}} [of|with|for|to|about] [the|] {{x}}{{rest}}",
    f"{_DO}{{V}} [the|] {{n}}s [of|with|for|in|about] {{x}}{{rest}}",
    "[What is|What's|Tell me|Get|Show me] the {n} [of|for|in] [the|] {x}{rest}[?|]",
    "[Which|What] {n} does {x} [have|play for|belong to|want|know]{rest}?",
    "Who [wrote|made|has|owns|painted|found] the {n} {x}{rest}?",
    "[Which|What] {n}s [does|has|orbit|like|know] {x}{rest}?",
    "Where [can I find|is|do I get] [the|a|] {x}{rest}?",
    "How [much|many {n}s] [is|are|has] [the|] {x}{rest}?",
    "I [need|want|am looking for] [a|the|some|] {x}{rest}. {V} [it|one|]",
]
_MANY = [
    f"{_DO}{{V}} {{c}} {{x}}{{rest}}[.|!| please||]",
    f"{_DO}{{V}} {{c}} {{u}} of {{x}}{{rest}}[.| please||]",
    f"{_DO}{{V}} [the|] {{x}} {{c}} times{{rest}}",
]
_LONG = [
    f"{_DO}{{V}} [the|my|] {{x}} for {{c}} {{t}}{{rest}}[.| please||]",
    f"{_DO}{{V}} [the|my|] {{x}} [by|to] {{c}} {{t}}{{rest}}",
]


def _thing(r: Random) -> str:
    draw = r.random()
    if draw < 0.7:
        return words.english_word(r)
    return (
        words.phrase(r, 2)
        if draw < 0.8
        else words.name(r)
        if draw < 0.9
        else r.choice([words.city, words.code, words.syllables])(r)
    )


def _number(r: Random) -> int:
    return r.randint(2, 12) if r.random() < 0.6 else r.randint(1, 400)


def wish(r: Random) -> Use:
    """One thing, at times with how many or how long, at times with where or for whom."""
    verb = r.choice(words.VERBS) if r.random() < 0.6 else words.english_word(r)
    noun = r.choice(words.NOUNS) if r.random() < 0.6 else words.english_word(r)
    slots = {"V": verb, "n": noun, "x": _thing(r), "u": r.choice(_UNITS), "t": r.choice(_TIMES), "rest": ""}
    key = (
        noun
        if r.random() < 0.6
        else r.choice([r.choice(words.NOUNS), words.english_word(r), f"{noun}_name", "item", "name", "query", "text"])
    )
    arguments: Json = {key: slots["x"]}
    kinds: dict[str, str] = {key: "string"}
    draw = r.random()
    if draw < 0.3:
        counted = draw < 0.15
        unit = slots["u"] if counted else slots["t"]
        other = spin(r, f"[{unit}|amount|count|quantity|number]" if counted else f"[{unit}|duration|{unit}|time]")
        slots["c"] = str(_number(r))
        arguments[other], kinds[other] = int(slots["c"]), "integer"
    if r.random() < 0.35 and len(arguments) < 2:
        rest = r.choice(_RESTS)
        other, value = r.choice(rest.keys.split()), rest.draw(r)
        if other not in arguments and value != slots["x"]:
            slots["rest"] = " " + spin(r, rest.says).format(v=value)
            arguments[other], kinds[other] = value, "string"
    question = fill(r, _ONE if draw >= 0.3 else _MANY if draw < 0.15 else _LONG, **slots)
    tool = _tool(r, verb, noun, kinds)
    ordered = {k: arguments[k] for k in tool.parameters["properties"]}
    return Use(
        tool,
        question[:1].upper() + question[1:],
        (Call(tool.name, ordered),),
        (toolbox.result_text(r, toolbox.KINDS[r.choice(["search", "calculator", "reminder", "weather"])], {}),),
    )


def _tool(r: Random, verb: str, noun: str, kinds: dict[str, str]) -> Tool:
    name = spin(r, f"[{verb}_{noun}|{verb}_{noun}|{verb}_{noun}|{verb}_{noun}s|{verb}|{verb}{noun.capitalize()}|{noun}_{verb}]")
    says = fill(
        r,
        [
            "{V} [a|the] {n}[.|]",
            "{V} [a|the] {n}[.|]",
            "{V} {n}s",
            "{V}s [a|the] {n}",
            "{V} [a|the] {n} [by|of|for|with] [a|the] {k}",
            "Use this to {v} [a|the] {n}",
            "{V} something",
        ],
        V=verb.capitalize(),
        v=verb,
        n=noun,
        k=next(iter(kinds)).replace("_", " "),
    )
    keys = r.sample(list(kinds), len(kinds)) if r.random() < 0.3 else list(kinds)
    properties: Json = {k: toolbox.property_(r, kinds[k], r.choice(["", "", f"The {k.replace('_', ' ')}"]), None) for k in keys}
    return Tool(name, says, toolbox.shaped(r, properties, keys))
