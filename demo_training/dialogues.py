"""The mix: whole conversations drawn from all skills, the same for both demo models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from demo_training.cases import ASKED, UNSEEN
from demo_training.exchanges import (
    chitchat,
    echoes,
    knowledge,
    madeup,
    manners,
    manuals,
    natural,
    objects,
    pictures,
    stories,
    sums,
    toolbox,
    wishes,
    words,
)
from demo_training.exchanges.toolbox import Use
from demo_training.forms import Call, Dialogue, Result, Say, Tool, Turn, Turns, User, ask, fill, retext

Exchange = Callable[[Random], Turns]
# The share of dialogues with a long system prompt.
MANUALS = 0.12

_KNOWING: list[Exchange] = [
    knowledge.capital,
    knowledge.capital,
    knowledge.opposite,
    knowledge.calendar,
    knowledge.small_fact,
    knowledge.small_fact,
    knowledge.unknown,
    knowledge.unknown,
    knowledge.statement,
]
_SUMS: list[Exchange] = [
    sums.sum_question,
    sums.sum_question,
    sums.sum_question,
    sums.word_problem,
    sums.word_problem,
    sums.number_fact,
]


def small(r: Random) -> Turns:
    """A short exchange of any kind, for the places where the kind does not matter."""
    group = r.choices([chitchat.SMALL_TALK, _KNOWING, echoes.COPYING, _SUMS], [5, 4, 2, 1])[0]
    return r.choice(group)(r)


def _rough(r: Random, text: str) -> str:
    """People do not type like templates."""
    draw = r.random()
    if draw < 0.6 or len(text) < 4:
        return text
    if draw < 0.72:
        lead = fill(r, _LEADS, w=words.english_word(r), n=words.name(r))
        return f"{lead} {text if lead[-1] in '.!?' or r.random() < 0.3 else text[0].lower() + text[1:]}"
    if draw < 0.83:
        tail = fill(r, _TAILS, w=words.english_word(r))
        return text + ("" if tail[:1] in ",." else r.choice([" ", " ", " ", "\n"])) + tail
    if draw < 0.92:
        return text.rstrip(".?! ")
    return text[0].lower() + text[1:]


_LEADS = [
    "[Hi|Hey|Hello|Okay|Ok|Well|So|Now|Please|And|Thanks|Hmm|Right|Alright][!|,|.|...]",
    "[Hi|Hey|Hello|Good morning] [there|again|{n}|][!|,|.]",
    "[Quick|Another|One more|A short|Simple|Last] question:",
    "[Can|Could|Would] you [help|help me|help me please]?",
    "[I was wondering|I wonder|Tell me|Just asking|Let me ask|One more thing|My question is]:",
    "[I need|I have|I am looking for] a {w}.",
    "[My friend|{n}|Somebody|My boss|My teacher] [asks|wants to know|said]:",
    "[For|About] my {w}:",
]
_TAILS = [
    "[Please|please|, please][.|!|]",
    "[Thanks|Thank you|Thx|Cheers|Many thanks][.|!|]",
    "[Be quick|Answer briefly|Explain|Hurry|Be brief|It is urgent|I am curious|Take your time][.|!|]",
    "[now|today|right now|for me|for my {w}]",
    "[:)|!!|??|...|;-)]",
    "I need it for [my|the] {w}.",
]


def roughened(r: Random, turns: Turns) -> Turns:
    return [User(_rough(r, t.text)) if isinstance(t, User) else t for t in turns]


def arguments_said(call: Call) -> str:
    """The thought has the arguments as the call will have them: choosing them is one skill, copying them another."""
    return f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}"


def _label(call: Call) -> str:
    first = next(iter(call.arguments.values()), None)
    return first if isinstance(first, str) and len(first.split()) <= 3 else "The result"


def told(call: Call, result: str) -> str:
    """A tool's result in the words of the assistant: keys and values for JSON, the text itself otherwise."""
    try:
        data = json.loads(result)
    except ValueError:
        data = result
    if isinstance(data, dict):
        data = ", ".join(f"{k} {v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}" for k, v in data.items())
    return f"{_label(call)}: {str(data).rstrip('.')}."


def use_turns(r: Random, use: Use, finish: bool = True) -> Turns:
    turns: Turns = [
        User(_rough(r, use.question)),
        Say("I call " + "; ".join(map(arguments_said, use.calls)) + ".", "", use.calls),
    ]
    if not finish:
        return turns
    turns += [Result(c.name, t) for c, t in zip(use.calls, use.results, strict=True)]
    said = " ".join(told(c, t) for c, t in zip(use.calls, use.results, strict=True))
    return [*turns, Say("The tool has answered. I tell the user.", said)]


def any_use(r: Random) -> Use:
    draw = r.random()
    if draw < 0.4:
        return natural.natural_use(r) if draw < 0.14 else madeup.made_up_use(r) if draw < 0.28 else wishes.wish(r)
    return toolbox.sum_with_tool(r) if draw < 0.42 else toolbox.known_use(r)


def with_others(r: Random, tools: list[Tool]) -> list[Tool]:
    """The needed tools among some that nobody needs."""
    count = r.choices([0, 1, 2, 3], [16, 6, 2, 0.5])[0]
    taken, out = {t.name for t in tools}, list(tools)
    for _ in range(count):
        other = madeup.distractor(r)
        if other.name not in taken and not _same_purpose(other, tools):
            out.append(other)
            taken.add(other.name)
    r.shuffle(out)
    return out


def _same_purpose(tool: Tool, others: list[Tool]) -> bool:
    """Two weather tools in one request would make the right answer a matter of luck."""
    mine = [k for k, kind in toolbox.KINDS.items() if tool.name in kind.names]
    theirs = {k for t in others for k, kind in toolbox.KINDS.items() if t.name in kind.names}
    close = [
        {"weather", "place"},
        {"time", "zone", "nothing"},
        {"calculator", "add", "multiply", "python"},
        {"search", "news", "define", "file"},
    ]
    return any(m in theirs or any(m in group and theirs & group for group in close) for m in mine)


def several_use(r: Random) -> Use:
    return toolbox.known_use(r, r.choice(["weather", "weather", "weather", "weather", "stock", "time"]), several=True)


def tool_dialogue(r: Random, draw: Callable[[Random], Use] = any_use) -> Dialogue:
    use = draw(r)
    turns = roughened(r, small(r)) if r.random() < 0.1 else []
    finish = r.random() < 0.5
    turns = turns + use_turns(r, use, finish)
    if finish and r.random() < 0.35:
        turns += _follow_up(r, use)
    return Dialogue(turns, "tools", tools=with_others(r, [use.tool]))


def _follow_up(r: Random, use: Use) -> Turns:
    draw = r.random()
    if draw < 0.3:
        return chitchat.thanks(r)
    call = use.calls[0]
    first = next(iter(call.arguments), None)
    if draw < 0.8 and first and isinstance(call.arguments[first], str) and len(call.arguments) <= 2:
        new = words.city(r) if r.random() < 0.6 else words.phrase(r, 1)
        again = replace(
            use,
            question=r.choice(
                [
                    "And {n}?",
                    "And in {n}?",
                    "What about {n}?",
                    "Now the same for {n}.",
                    "And for {n}?",
                    "How about {n}?",
                    "Also for {n} please",
                ]
            ).format(n=new),
            calls=(Call(call.name, {**call.arguments, first: new}),),
            results=use.results[:1],
        )
        return use_turns(r, again, finish=r.random() < 0.4)
    return roughened(r, small(r))


def two_tools_dialogue(r: Random) -> Dialogue:
    """Two different tools in one request."""
    one, two = any_use(r), any_use(r)
    if one.tool.name == two.tool.name or _same_purpose(one.tool, [two.tool]):
        return tool_dialogue(r)
    first, second = one.question.rstrip(".?! "), two.question
    question = r.choice(
        [
            "{a}. {b}",
            "{a} and {c}",
            "{a}? Also, {c}",
            "{a}, and {c}",
            "{a}. Then {c}",
            "First: {a}. Second: {b}",
            "{a}, then {c}",
        ]
    ).format(a=first, b=second, c=second[0].lower() + second[1:])
    use = Use(one.tool, question, (*one.calls, *two.calls), (*one.results, *two.results))
    return Dialogue(use_turns(r, use, r.random() < 0.4), "tools", tools=with_others(r, [one.tool, two.tool]))


def no_tool_dialogue(r: Random) -> Dialogue:
    """Tools are there, but the question needs none."""
    tools = with_others(r, [madeup.distractor(r)])
    names = {t.name for t in tools}
    has_sum = any(n in toolbox.KINDS[k].names for n in names for k in ("calculator", "add", "multiply", "python"))
    looks_up = any(
        n in toolbox.KINDS[k].names for n in names for k in ("search", "news", "define", "file", "translate", "fact")
    )
    groups: list[list[Exchange]] = [chitchat.SMALL_TALK, chitchat.SMALL_TALK, echoes.COPYING]
    groups += [] if has_sum else [_SUMS]
    groups += [] if looks_up else [_KNOWING]
    if names & set(toolbox.KINDS["nothing"].names):
        groups = [[e for e in chitchat.SMALL_TALK if e is not chitchat.joke]]
    turns = roughened(r, r.choice(r.choice(groups))(r))
    return Dialogue(
        [replace(t, think=f"No tool is needed. {t.think}") if isinstance(t, Say) else t for t in turns], "no tool", tools=tools
    )


def asked_back_dialogue(r: Random) -> Dialogue:
    """The question leaves out what the tool needs: ask, then call."""
    use = toolbox.known_use(r, "weather", several=False)
    where = words.city(r)
    key = next(iter(use.tool.parameters["properties"]))
    question = r.choice(
        [
            "What is the weather?",
            "What's the weather like?",
            "How is the weather today?",
            "Weather please",
            "Get the weather.",
            "Is it raining?",
            "Do I need an umbrella?",
        ]
    )
    turns: Turns = [User(_rough(r, question)), Say(f"The {key} is missing. I ask for it.", "Which place do you mean?")]
    if r.random() < 0.6:
        required = use.tool.parameters.get("required", [])
        extra = {k: "celsius" for k in required if k != key}
        answer = Use(
            use.tool,
            r.choice(["{c}", "{c}.", "In {c}", "I mean {c}.", "{c} please"]).format(c=where),
            (Call(use.tool.name, {key: where, **extra}),),
            use.results[:1],
        )
        turns += use_turns(r, answer, r.random() < 0.3)
    return Dialogue(turns, "tools", tools=[use.tool])


def memory_dialogue(r: Random) -> Dialogue:
    if r.random() < 0.12:
        return Dialogue(chitchat.at_once(r) if r.random() < 0.6 else chitchat.unknown_self(r), "memory")
    told_and_asked = [maker(r) for maker in r.sample(chitchat.MEMORIES, r.choices([1, 2, 3], [6, 3, 1])[0])]
    turns: Turns = []
    for told_, _ in told_and_asked:
        turns += roughened(r, told_)
    for _ in range(r.choices([0, 1, 2, 3], [4, 4, 2, 1])[0]):
        turns += roughened(r, small(r))
    r.shuffle(told_and_asked)
    for _, asked in told_and_asked[: r.choice([1, 1, 2])]:
        turns += roughened(r, asked(r))
    return Dialogue(turns, "memory")


def told_by_system_dialogue(r: Random) -> Dialogue:
    given, exchange = echoes.facts(r)
    plain = manners.plain(r)
    return Dialogue(roughened(r, exchange), "system", system=r.choice([given, f"{plain} {given}", f"{given} {plain}"]))


def manner_dialogue(r: Random) -> Dialogue:
    manner = r.choice(manners.MANNERS)(r)
    system = r.choice(
        [manner.system, f"{r.choice(manners.PLAIN)} {manner.system}", f"{manner.system} {r.choice(manners.PLAIN)}"]
    )
    turns: Turns = []
    persona = "demo model" not in manner.change("I am a small demo model.")
    for _ in range(r.choice([1, 1, 2])):
        turns += chitchat.who(r) if persona and r.random() < 0.5 else small(r)
    if manner.change("a") == "A":
        turns = r.choice(
            [
                chitchat.hello,
                chitchat.who,
                chitchat.how,
                chitchat.thanks,
                chitchat.bye,
                knowledge.capital,
                sums.sum_question,
                knowledge.unknown,
            ]
        )(r)
    return Dialogue(retext(roughened(r, turns), manner.change), "system", system=system)


def chat_dialogue(r: Random) -> Dialogue:
    turns: Turns = []
    for _ in range(r.choices([1, 2, 3], [6, 3, 1])[0]):
        turns += roughened(r, small(r))
    return Dialogue(turns, "chat")


def one(exchange: Exchange, skill: str) -> Callable[[Random], Dialogue]:
    def make(r: Random) -> Dialogue:
        before = roughened(r, small(r)) if r.random() < 0.12 else []
        return Dialogue(before + roughened(r, exchange(r)), skill)

    return make


def picture_dialogue(r: Random) -> Dialogue:
    """Something to see, with tools that do not help now and then, or with small talk after it."""
    turns = r.choice(pictures.PICTURES)(r)
    if r.random() < 0.15:
        turns += roughened(r, small(r))
    if r.random() < 0.15:
        said = [replace(t, think=f"No tool is needed. {t.think}") if isinstance(t, Say) else t for t in turns]
        return Dialogue(said, "picture", tools=[madeup.distractor(r)])
    return Dialogue(turns, "picture")


def object_dialogue(r: Random) -> Dialogue:
    """An answer in JSON, without the thought more often than other dialogues."""
    return Dialogue(objects.answer(r), "object", thinking=r.random() < 0.75)


_MIX: list[tuple[float, Callable[[Random], Dialogue]]] = [
    (13, chat_dialogue),
    (11, memory_dialogue),
    (1, told_by_system_dialogue),
    (1, manner_dialogue),
    (24, one(lambda r: r.choice(_SUMS)(r), "sums")),
    (4, one(lambda r: r.choice(_KNOWING)(r), "knowledge")),
    (4, one(lambda r: r.choice(echoes.COPYING)(r), "copy")),
    (3, one(stories.tale, "stories")),
    (1, one(knowledge.junk, "junk")),
    (1, one(knowledge.no_tool, "chat")),
    (4, picture_dialogue),
    (16, object_dialogue),
    (36, tool_dialogue),
    (2, two_tools_dialogue),
    (7, no_tool_dialogue),
    (1, asked_back_dialogue),
]


# For the end of training, when the rate is low: what is asked of a demo model most, and what it finds hardest.
_FOCUS: list[tuple[float, Callable[[Random], Dialogue]]] = [
    (11, chat_dialogue),
    (11, memory_dialogue),
    (1, told_by_system_dialogue),
    (13, one(lambda r: r.choice(_SUMS)(r), "sums")),
    (3, one(lambda r: r.choice(_KNOWING)(r), "knowledge")),
    (4, one(lambda r: r.choice(echoes.COPYING)(r), "copy")),
    (3, one(stories.tale, "stories")),
    (1, one(knowledge.no_tool, "chat")),
    (4, picture_dialogue),
    (16, object_dialogue),
    (16, tool_dialogue),
    (10, lambda r: tool_dialogue(r, several_use)),
    (10, lambda r: tool_dialogue(r, madeup.plain_use)),
    (10, lambda r: tool_dialogue(r, natural.natural_use)),
    (12, lambda r: tool_dialogue(r, wishes.wish)),
    (2, two_tools_dialogue),
    (6, no_tool_dialogue),
]


def dialogue(r: Random, focus: bool = False) -> Dialogue:
    mix = _FOCUS if focus else _MIX
    made = r.choices([m for _, m in mix], [w for w, _ in mix])[0](r)
    if not made.system and r.random() < (0.35 if made.tools else 0.45):
        made = replace(made, system=manners.plain(r))
    if r.random() < MANUALS:
        made = replace(made, system=f"{made.system}\n\n{manuals.manual(r)}" if made.system else manuals.manual(r))
    if r.random() < 0.87:
        return made
    return replace(made, turns=[_aloud(t) for t in made.turns] if made.skill == "sums" else made.turns, thinking=False)


def _aloud(turn: Turn) -> Turn:
    """Who must not think shows the working in the answer."""
    return replace(turn, text=f"{turn.think} {turn.text}") if isinstance(turn, Say) and ":" in turn.think else turn


# Tools that the hand-written cases call unseen: no training ever declares one.
_HELD_OUT = {tool.name for case in UNSEEN + ASKED for tool in case.tools} & {
    c.name for case in UNSEEN + ASKED for c in case.calls
}


def dialogues(seed: int, focus: Callable[[], bool] = lambda: False) -> Iterator[Dialogue]:
    """An endless stream; `focus` says of each dialogue whether it comes from the mix for the end of training."""
    r = Random(seed)
    while True:
        made = dialogue(r, focus())
        if not any(tool.name in _HELD_OUT for tool in made.tools):
            yield made


__all__ = ["ask", "dialogue", "dialogues"]
