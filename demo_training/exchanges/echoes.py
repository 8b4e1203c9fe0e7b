"""Copying skills: repeat, count, list, look something up in the given text, put it into JSON."""

# Lists of phrases read better in long lines than one phrase per line.
# ruff: noqa: E501
from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from demo_training.exchanges import words
from demo_training.forms import Turns, User, ask, fill

_SAY = [
    "[Please|Now|Just|Kindly|] [repeat|say|write|copy|echo|output] [exactly|precisely|word for word|literally|the following|after me|back to me|]: {x}",
    "[Can|Could|Would] you [please|] [say|repeat|write|echo] {x}[?|]",
    "[Reply|Answer|Respond] [only|just|simply|] with [the word|the words|the text|] {x}[.|]",
    "[Say|Write|Repeat] [the word|the words|the phrase|the sentence|the text] [exactly|]: {x}",
    "I want you to [say|repeat|write] {x}[.|]",
    "Say {x}.",
    "Say {x}",
    "Repeat: {x}",
    "Repeat after me: {x}",
    "Please say {x}.",
    "Echo {x}",
    "Say exactly: {x}",
    "Say the words {x}",
    "Write {x}",
    "Just say {x}",
    "Reply with {x}",
    "Reply with exactly: {x}",
    "Answer with {x}",
    "Respond with the words: {x}",
    "Repeat this: {x}",
    "Say '{x}'",
    'Say "{x}"',
    "Say the word {x}.",
    "Reply only with {x}",
    "Repeat the text {x}",
    "Please repeat: {x}",
    "Can you say {x}?",
    "Print {x}",
    "Type {x}",
    "Output {x}",
    "Copy this: {x}",
    "Answer only: {x}",
    "Reply with the single word {x}.",
    "Say just: {x}",
]


def text(r: Random) -> str:
    """Something to copy: words, names, codes, random letters."""
    draw = r.random()
    if draw < 0.5:
        return words.phrase(r, 8)
    if draw < 0.6:
        return words.code(r)
    if draw < 0.75:
        return " ".join(words.syllables(r) for _ in range(r.randint(1, 6)))
    if draw < 0.85:
        return words.phrase(r, 5).capitalize()
    if draw < 0.92:
        return " ".join(str(r.randint(0, 999)) for _ in range(r.randint(1, 5)))
    return r.choice(
        [
            words.name(r),
            words.city(r),
            words.email(r),
            "hello",
            "hello world",
            "pong",
            "OK",
            "yes",
            "ping",
            "foo bar",
            words.phrase(r, 2).upper(),
            words.syllables(r).upper(),
        ]
    )


def repeat(r: Random) -> Turns:
    x = text(r)
    return ask(fill(r, _SAY, x=x), "The user wants me to repeat it.", x)


def repeat_twice(r: Random) -> Turns:
    x = words.phrase(r, 2)
    times = r.randint(2, 5)
    word = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}[times] if r.random() < 0.6 else f"{times} times"
    return ask(
        fill(r, ["Say {x} {k}.", "Repeat {x} {k}", "Write {x} {k}.", "Say the word {x} {k}"], x=x, k=word),
        f"The user wants it {times} times.",
        " ".join([x] * times),
    )


def spell(r: Random) -> Turns:
    x = r.choice([words.syllables(r, 2), words.english_word(r), r.choice(words.NAMES)])
    if len(x) > 8:
        x = x[:5]
    return ask(
        fill(r, ["Spell {x}.", "How do you spell {x}?", "Spell the word {x}"], x=x), f"The letters of {x}.", "-".join(x.upper())
    )


_COUNT = [
    "[Please|Could you|Can you|Now|] count [up|] from {a} [up to|until|to] {b} [please|for me|][.|?|]",
    "[Tell|Give|Show] me [all|] the numbers [from|between] {a} [to|and] {b}[.|]",
    "Count from {a} to {b}.",
    "Count from {a} to {b}",
    "Please count from {a} to {b}.",
    "Can you count from {a} to {b}?",
    "Count {a} to {b}",
    "List the numbers from {a} to {b}.",
    "Write the numbers from {a} to {b}",
]


def count(r: Random) -> Turns:
    a = 1 if r.random() < 0.75 else r.randint(0, 40)
    b = a + r.choice([2, 3, 4, 5, 7, 9, 9, 11, 14, 19, 19, 24, 29, 39, 49])
    questions = _COUNT + (
        [
            "Count to {b}.",
            "Count to {b}",
            "Can you count to {b}?",
            "[Please|Could you|Now|] count [up|] [to|until] {b} [please|for me|][.|?|]",
        ]
        * 2
        if a == 1
        else []
    )
    return ask(fill(r, questions, a=a, b=b), f"I count from {a} to {b}.", ", ".join(str(i) for i in range(a, b + 1)))


def _facts(r: Random, n: int) -> list[tuple[str, str]]:
    makers: list[Callable[[Random], tuple[str, str]]] = [
        lambda q: (words.phrase(q, 2), words.phrase(q, 2)),
        lambda q: (f"{words.english_word(q)} code", words.code(q)),
        lambda q: (f"colour of the {words.english_word(q)}", q.choice(words.COLOURS)),
        lambda q: (f"price of the {words.english_word(q)}", f"{q.randint(1, 500)} {q.choice(['dollars', 'euros'])}"),
        lambda q: (f"name of the {words.english_word(q)}", words.name(q)),
        lambda q: ("secret word", words.phrase(q, 1)),
        lambda q: ("password", words.code(q)),
        lambda q: ("magic number", str(q.randint(1, 9999))),
    ]
    return [r.choice(makers)(r) for _ in range(n)]


_QUESTION = [
    "[And|So|Now],[ tell me,|] [what is|what's|which is] the {k}[?|]",
    "[Do|Can|Could] you [tell me|know|say|remember] [the {k}|what the {k} is][?|]",
    "What is the {k}?",
    "Tell me the {k}.",
    "What's the {k}?",
    "Do you know the {k}?",
    "the {k}?",
    "I need the {k}.",
    "Can you tell me the {k}?",
    "What was the {k}?",
    "Which {k} is it?",
]


def facts(r: Random) -> tuple[str, Turns]:
    """A text that states some facts, and a question for one of them."""
    pairs = _facts(r, r.randint(1, 4))
    k, v = r.choice(pairs)
    shape = r.choice(["The {k} is {v}.", "The {k} is {v}.", "The {k}: {v}.", "{k}: {v}\n", "The {k} is called {v}."])
    given = " ".join(shape.format(k=a, v=b) for a, b in pairs).strip()
    return given, ask(fill(r, _QUESTION, k=k), f"The {k} is {v}.", f"The {k} is {v}.")


def look_up(r: Random) -> Turns:
    """Text and question in one message."""
    given, (question, answer) = facts(r)
    asked = getattr(question, "text", "")
    shape = r.choice(["{g} {q}", "{g}\n{q}", "{q}\n{g}", "Read this: {g}\n\n{q}", "Text: {g}\nQuestion: {q}"])
    return [User(shape.format(g=given, q=asked)), answer]


_WHO_DOES = ["lives in", "likes", "has", "bought", "plays", "wants", "works with", "comes from", "drives to", "found"]


def who_does(r: Random) -> Turns:
    """Several people, one verb, and the question which of them."""
    verb = r.choice(_WHO_DOES)
    people = r.sample(words.NAMES, r.randint(2, 3))
    things = [words.city(r) if verb in ("lives in", "comes from", "drives to") else words.phrase(r, 1) for _ in people]
    text_ = " ".join(f"{p} {verb} {t}." for p, t in zip(people, things, strict=True))
    i = r.randrange(len(people))
    answer = f"{people[i]} {verb} {things[i]}."
    return ask(f"{text_} Who {verb} {things[i]}?", answer, answer)


def as_json(r: Random) -> Turns:
    """Facts in a sentence, wanted as a JSON object."""
    n = words.name(r)
    pairs: list[tuple[str, object, str]] = [("name", n, f"{n}")]
    if r.random() < 0.7:
        age = r.randint(1, 99)
        pairs.append(("age", age, r.choice([f"{age} years old", f"age {age}", f"aged {age}"])))
    if r.random() < 0.5:
        c = words.city(r)
        pairs.append(("city", c, f"from {c}"))
    if r.random() < 0.4:
        k, v = words.english_word(r), words.phrase(r, 1)
        pairs.append((k, v, f"{k} {v}"))
    keys = [p[0] for p in pairs]
    said = ", ".join(p[2] for p in pairs)
    listed = ", ".join(keys[:-1]) + " and " + keys[-1] if len(keys) > 1 else keys[0]
    question = fill(
        r,
        [
            "{s}. Give me JSON with {k}.",
            "Extract {k} as JSON: {s}",
            "Answer as JSON with the keys {k}. {s}.",
            "Make a JSON object with {k} from this: {s}",
            "{s}. Return JSON.",
            "Return a JSON object with {k}: {s}",
            "Extract the information: {s}",
        ],
        s=said,
        k=listed,
    )
    return ask(
        question,
        "I copy " + ", ".join(f"{p[0]} {p[1]}" for p in pairs) + ".",
        json.dumps({p[0]: p[1] for p in pairs}, ensure_ascii=False),
    )


def first_or_last(r: Random) -> Turns:
    items = [words.phrase(r, 1) for _ in range(r.randint(3, 5))]
    listed = ", ".join(items[:-1]) + " and " + items[-1] if r.random() < 0.5 else ", ".join(items)
    which, item = r.choice([("first", items[0]), ("last", items[-1]), ("second", items[1])])
    return ask(
        fill(
            r,
            ["What is the {w} word in this list: {l}?", "{l}. Which one is the {w}?", "Name the {w} of these: {l}"],
            w=which,
            l=listed,
        ),
        f"The {which} is {item}.",
        item,
    )


COPYING: list[Callable[[Random], Turns]] = [
    repeat,
    repeat,
    repeat,
    repeat_twice,
    spell,
    count,
    look_up,
    look_up,
    who_does,
    as_json,
    first_or_last,
]
