"""Answers in JSON, as structured output imposes them: compact, with values from the question where the question has them."""

# Lists of phrases read better in long lines than one phrase per line.
from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from demo_training.exchanges import sums, words
from demo_training.forms import Json, Say, Turns, User, ask, fill

Found = tuple[str, Json]
# What a model may think before an answer whose form the question does not mention.
_THOUGHTS = [
    "I do not know this. I say so.",
    "The user asks who I am.",
    "The user greets me. I greet back.",
    "The user asks what I can do.",
    "The user tells me something.",
    "I answer in JSON.",
]
_HINTS = ["as JSON", "in JSON", "as a JSON object", "in JSON format", "as JSON please"]
_PEOPLE = [
    "{n} is {a} years old[ and lives in {c}|].",
    "[My|Her|His] [friend|brother|sister|teacher] {n} [from {c}|] is {a}[.| years old.]",
    "[Extract the person|Who is this|Find the person]: {n}, {a}[, {c}|][.|]",
    "{n} [lives|works] in {c}[.| and is {a} years old.]",
    "I am {n}, I am {a} years old and I live in {c}.",
]
_EVENTS = [
    "{g} are going to a {e} on {d}.",
    "{g} [meet|will meet] [at|for] the {e} on {d}.",
    "[There is a|The] {e} [is|takes place] on {d} with {g}.",
    "[Invite|Please invite] {g} to the {e} on {d}.",
]
_EVENT_NAMES = (
    "science fair|birthday party|concert|team meeting|dinner|lunch|workshop|wedding|conference|picnic|book club|game night"
)
_SKIES = ["sunny", "cloudy", "rainy", "snowy", "windy", "clear", "foggy"]


def compact(value: Any) -> str:
    """Write JSON without white space between its parts."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _some(r: Random, given: Json, least: int = 1) -> Json:
    """Some of the keys, in any order now and then."""
    keys = list(given)
    chosen = set(r.sample(keys, r.randint(min(least, len(keys)), len(keys))))
    left = [key for key in keys if key in chosen]
    if r.random() < 0.2:
        r.shuffle(left)
    return {key: given[key] for key in left}


def _person(r: Random) -> Found:
    name, age, city = words.name(r), r.randint(3, 99), words.city(r)
    question = fill(r, _PEOPLE, n=name, a=age, c=city)
    known = {"name": name, "age": age if f"{age}" in question else r.randint(20, 60)}
    place = {r.choice(["city", "location", "home"]): city} if city in question else {}
    return question, known if r.random() < 0.5 else _some(r, known | place)


def _anybody(r: Random) -> Found:
    """Nothing in the question says who."""
    name = r.choice(words.NAMES)
    question = fill(
        r,
        [
            "Who[?|]",
            "[A|Give me a|Invent a|Make up a|Generate a] [person|user|customer|character][.|]",
            "Who [is it|are you][?|]",
        ],
    )
    more = {"email": f"{name.lower()}@example.com", "city": r.choice(words.CITIES), "active": r.random() < 0.5}
    known = {"name": name, "age": r.randint(20, 60)}
    return question, known if r.random() < 0.6 else known | _some(r, more)


def _event(r: Random) -> Found:
    people, day = (
        r.sample(words.NAMES, r.randint(1, 3)),
        r.choice([*words.DAYS, f"{r.choice(words.MONTHS)} {r.randint(1, 28)}"]),
    )
    name = r.choice(_EVENT_NAMES.split("|")) if r.random() < 0.8 else words.phrase(r, 2)
    group = f"{', '.join(people[:-1])} and {people[-1]}" if len(people) > 1 else people[0]
    lead = r.choice(["", "", "Extract the event information. ", "Extract the event: "])
    made = {"name": name, "date": day, "participants": people}
    renamed = {
        r.choice(["title", "event"]): name,
        r.choice(["day", "when"]): day,
        r.choice(["people", "guests", "attendees"]): people,
    }
    return lead + fill(r, _EVENTS, g=group, e=name, d=day), made if r.random() < 0.7 else renamed


def _equation(r: Random) -> Found:
    a, x, b = r.randint(2, 9), r.randint(-9, 12), r.choice([i for i in range(-12, 24) if i])
    left = f"{a}x {'+' if b > 0 else '-'} {abs(b)}"
    move = f"{'Subtract' if b > 0 else 'Add'} {abs(b)} {'from' if b > 0 else 'to'} both sides."
    steps = [
        (f"Start with {left} = {a * x + b}.", f"{left} = {a * x + b}"),
        (move, f"{a}x = {a * x}"),
        (f"Divide by {a}.", f"x = {x}"),
    ]
    question = fill(
        r,
        ["[how can I|Please|How do I|] solve {e}[?|]", "Solve {e}[.|]", "[What is x if|Find x:] {e}"],
        e=f"{left} = {a * x + b}",
    )
    chosen = steps[r.choice([0, 0, 1]) :]
    return question, {"steps": [{"explanation": why, "output": out} for why, out in chosen], "final_answer": f"x = {x}"}


def _sum(r: Random) -> Found:
    (user, said) = sums.sum_question(r)[:2]
    assert isinstance(user, User)  # noqa: S101
    assert isinstance(said, Say)  # noqa: S101
    number = said.text.rstrip(".").split()[-1]
    key = r.choice(["result", "answer", "final_answer", "value", "number"])
    return user.text, {key: int(number) if r.random() < 0.6 and number.lstrip("-").isdigit() else number}


def _weather(r: Random) -> Found:
    city, sky, degrees = words.city(r), r.choice(_SKIES), r.randint(-5, 35)
    question = fill(
        r,
        [
            "[What is|What's|How is|Tell me] the weather in {c}[?|]",
            "Weather in {c}[?|.|]",
            "[It is|Now it is] {s} and {t} degrees in {c}.",
        ],
        c=city,
        s=sky,
        t=degrees,
    )
    place = {r.choice(["city", "location", "place"]): city}
    rest = {
        r.choice(["temperature", "temp", "temperature_c"]): degrees,
        r.choice(["condition", "conditions", "description", "summary"]): sky,
    }
    units = {r.choice(["unit", "units"]): r.choice(["celsius", "C"])} if r.random() < 0.3 else {}
    return question, place | _some(r, rest) | units


def _place(r: Random) -> Found:
    country = r.choice(list(words.CAPITALS))
    city = words.CAPITALS[country]
    country = country.removeprefix("the ")
    question = fill(
        r,
        [
            "[What is|Name] the capital of {k}[?|.]",
            "Where [were|are] the [olympics|games] [held|] in {k}[?|]",
            "[Tell me about|Describe] {c}[.|]",
        ],
        k=country,
        c=city,
    )
    return question, {"city": city, "country": country} if r.random() < 0.6 else {
        r.choice(["capital", "name", "answer"]): city,
        "country": country,
    }


def _mood(r: Random) -> Found:
    good = r.random() < 0.5
    text = fill(
        r,
        ["I [love|like] this {o}!", "[A great|The best] {o}."]
        if good
        else ["I [hate|do not like] this {o}.", "[A bad|The worst] {o}."],
        o=r.choice(words.OBJECTS),
    )
    made = {
        "sentiment": "positive" if good else "negative",
        "score": round(r.uniform(0.6, 0.99), 1),
        "reason": "It is good." if good else "It is bad.",
    }
    return r.choice(["", "Review: ", "Classify: "]) + text, _some(r, made)


def _recipe(r: Random) -> Found:
    food = r.choice(words.FOODS)
    parts: list[Any] = r.sample(words.FOODS, r.randint(2, 4))
    if r.random() < 0.6:
        parts = [
            {"name": part, r.choice(["amount", "quantity"]): r.choice(["1 cup", "2 cups", "100 g", "1"])} for part in parts
        ]
    steps = r.sample(["Mix everything.", "Cook it.", "Bake it.", "Serve it.", "Cut it.", "Wait."], r.randint(2, 3))
    question = fill(
        r, ["[Generate|Give me|Write|Make] a [recipe for|] {f} [recipe|][.|]", "How do I [cook|make] {f}[?|]"], f=food
    )
    made = {"name": food, "ingredients": parts, "steps": steps}
    return question, {"recipe": made} if r.random() < 0.3 else _some(r, made, 2)


def _joke(r: Random) -> Found:
    animal = r.choice(words.ANIMALS)
    made = {
        "setup": f"Why did the {animal} cross the road?",
        "punchline": "To get to the other side!",
        "rating": r.randint(1, 10),
    }
    return fill(
        r, ["Tell me a joke about [a|] {x}[s|].", "A joke about [a|] {x}[.|]"], x=animal
    ), made if r.random() < 0.5 else _some(r, made)


def _contact(r: Random) -> Found:
    name, mail, phone = (
        f"{r.choice(words.NAMES)} {words.name(r)}",
        words.email(r),
        f"({r.randint(200, 999)}) {r.randint(200, 999)}-{r.randint(1000, 9999)}",
    )
    lead = r.choice(["", "Extract contact info from: ", "Extract: "])
    return f"{lead}{name}, {mail}, {phone}", {"name": name, "email": mail, "phone": phone}


def _verdict(r: Random) -> Found:
    key, yes = r.choice(["is_homework", "is_math", "is_safe", "is_violating", "allowed", "done", "valid"]), r.random() < 0.5
    why = {
        r.choice(["reasoning", "reason", "explanation"]): r.choice(
            ["It is a question.", "It is fine.", "I think so.", "The text is clear."]
        )
    }
    question = r.choice([chat_question(r), f"{words.phrase(r, 5).capitalize()}?"])
    return question, {key: yes} | (why if r.random() < 0.6 else {}) | ({"category": None} if r.random() < 0.2 else {})


def chat_question(r: Random) -> str:
    """Return a question that says nothing of its answer."""
    return fill(
        r,
        ["Hello!", "Hi", "Think", "What is the meaning of life?", "Tell me about [the|] {x}.", "[Describe|Explain] {x}."],
        x=words.english_word(r),
    )


def _value(r: Random, depth: int = 0) -> Any:
    draw = r.random()
    if draw < 0.5 or depth > 1:
        return words.phrase(r, 3)
    if draw < 0.65:
        return r.randint(0, 999) if r.random() < 0.8 else round(r.uniform(0, 99), 1)
    if draw < 0.75:
        return r.random() < 0.5
    if draw < 0.88:
        return [_value(r, 2) for _ in range(r.randint(1, 3))]
    return {words.english_word(r): _value(r, depth + 1) for _ in range(r.randint(1, 3))}


def _named(r: Random) -> Found:
    """Keys of all kinds, with values from the question."""
    made: Json = {}
    for _ in range(r.randint(1, 4)):
        made[r.choice(words.NOUNS) if r.random() < 0.7 else words.english_word(r)] = (
            words.phrase(r, 2) if r.random() < 0.7 else r.randint(1, 500)
        )
    parts = [fill(r, ["[the|] {k} [is|:|=] {v}", "{k} {v}"], k=key, v=value) for key, value in made.items()]
    return f"{r.choice(['', 'Extract: ', 'Note this: ', 'Here is the record: '])}{', '.join(parts)}.", made


def _strange(r: Random) -> Found:
    """Keys and values that the question does not have."""
    return chat_question(r), {words.english_word(r): _value(r) for _ in range(r.randint(1, 5))}


_OBJECTS: list[tuple[int, Callable[[Random], Found]]] = [
    (12, _person),
    (10, _anybody),
    (12, _event),
    (12, _equation),
    (4, _sum),
    (8, _weather),
    (4, _place),
    (3, _mood),
    (5, _recipe),
    (3, _joke),
    (4, _contact),
    (4, _verdict),
    (8, _named),
    (8, _strange),
]


def answer(r: Random) -> Turns:
    """A question and its answer in JSON; the first mark is imposed unless the question mentions JSON."""
    question, made = r.choices([make for _, make in _OBJECTS], [weight for weight, _ in _OBJECTS])[0](r)
    text = compact(made)
    if r.random() < 0.35:
        asked = f"{question.rstrip('.?! ')} {r.choice(_HINTS)}{r.choice(['', '.'])}"
        return ask(asked, "I answer in JSON.", text)
    return [User(question), Say(r.choice(_THOUGHTS), text, imposed='{"')]
