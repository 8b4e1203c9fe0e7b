"""What the demo models know about the world, and how they admit what they do not know."""

# Lists of phrases read better in long lines than one phrase per line.
from __future__ import annotations

from random import Random

from demo_training.exchanges import words
from demo_training.forms import Turns, ask, fill, spin

_CAPITAL = [
    "[Please|Kindly|] [name|tell me|give me|say] [the|] capital [city|] of {c} [please|][.|?|]",
    "[Do|Could] you [happen to|] [know|say|tell me] [what|which city] the capital of {c} is[?|]",
    "[What|Which] [city|town] is the capital [city|] of {c}[?|]",
    "I [need|want|would like] to know the capital of {c}[.|]",
    "{c} has which [capital|capital city]?",
    "What is {c}'s capital [city|called|]?",
    "{c}'s capital?",
    "What is the capital of {c}?",
    "What's the capital of {c}?",
    "Which city is the capital of {c}?",
    "Name the capital of {c}.",
    "Tell me the capital of {c}",
    "capital of {c}?",
    "Do you know the capital city of {c}?",
    "{c}: what is its capital?",
    "Can you tell me what the capital of {c} is?",
    "What is the capital city of {c}",
    "The capital of {c} is which city?",
    "What city is {c}'s capital?",
]
_COUNTRY = [
    "{c} is the capital of which country?",
    "Which country has {c} as its capital?",
    "Of which country is {c} the capital?",
]
_OPPOSITE = [
    "[What|Which] [word|] is the [exact|] opposite of [the word|] {w}[?|]",
    "[Please|] [give|tell|name] [me|us] the [opposite|antonym] of [the word|] {w}[.|]",
    "What is the [opposite|contrary|antonym] of {w}?",
    "{w} is the opposite of what?",
    "The opposite of {w} is?",
    "What is the opposite of {w}?",
    "Opposite of {w}?",
    "Tell me the opposite of {w}.",
    "What's the opposite of {w}",
    "Give me the antonym of {w}.",
    "Which word is the opposite of {w}?",
]
_THING_COLOUR = {
    "the sky": "blue",
    "grass": "green",
    "snow": "white",
    "a banana": "yellow",
    "blood": "red",
    "coal": "black",
    "the sun": "yellow",
    "a lemon": "yellow",
    "a tomato": "red",
    "milk": "white",
    "the sea": "blue",
    "a strawberry": "red",
    "a frog": "green",
    "a carrot": "orange",
}
_LEGS = {
    "a dog": 4,
    "a cat": 4,
    "a spider": 8,
    "a bird": 2,
    "an ant": 6,
    "a horse": 4,
    "a human": 2,
    "a snake": 0,
    "a cow": 4,
    "a bee": 6,
    "a duck": 2,
}
_SOUND = {
    "dog": "woof",
    "cat": "meow",
    "cow": "moo",
    "duck": "quack",
    "sheep": "baa",
    "pig": "oink",
    "lion": "roar",
    "bee": "buzz",
}
_FACTS = {
    "How many days are in a week?": "A week has 7 days.",
    "How many months are in a year?": "A year has 12 months.",
    "How many days does a year have?": "A year has 365 days.",
    "How many hours are in a day?": "A day has 24 hours.",
    "How many minutes are in an hour?": "An hour has 60 minutes.",
    "How many seconds are in a minute?": "A minute has 60 seconds.",
    "How many days are in a year?": "A year has 365 days.",
    "How many continents are there?": "There are 7 continents.",
    "What is the largest planet?": "The largest planet is Jupiter.",
    "Which planet do we live on?": "We live on the planet Earth.",
    "What is the biggest ocean?": "The biggest ocean is the Pacific.",
    "What is the highest mountain?": "The highest mountain is Mount Everest.",
    "What is the largest ocean on Earth?": "The biggest ocean is the Pacific.",
    "Who wrote Hamlet?": "William Shakespeare wrote Hamlet.",
    "Who wrote Romeo and Juliet?": "William Shakespeare wrote Romeo and Juliet.",
    "What is water made of?": "Water is made of hydrogen and oxygen.",
    "Why is the sky blue?": "The air scatters blue light more than red light.",
    "At what temperature does water boil?": "Water boils at 100 degrees Celsius.",
    "When does water freeze?": "Water freezes at 0 degrees Celsius.",
    "Name three colours.": "Red, blue and green.",
    "Name three colors": "Red, blue and green.",
    "List three fruits.": "Apple, banana and orange.",
    "Name three animals.": "Dog, cat and horse.",
    "Name a fruit.": "Apple.",
    "Name a colour.": "Blue.",
    "Name an animal": "Dog.",
    "Give me a number.": "7.",
    "Pick a random number.": "7.",
    "What are the primary colours?": "Red, yellow and blue.",
    "How many letters are in the alphabet?": "The alphabet has 26 letters.",
    "Is the earth round?": "Yes, the earth is round.",
    "Can fish swim?": "Yes, fish can swim.",
    "Can dogs fly?": "No, dogs can not fly.",
    "Is fire hot?": "Yes, fire is hot.",
    "Is ice cold?": "Yes, ice is cold.",
    "What do cows drink?": "Cows drink water.",
    "What do bees make?": "Bees make honey.",
    "Who was the first man on the moon?": "Neil Armstrong was the first man on the moon.",
    "What is the meaning of life?": "Some say 42.",
    "What is the speed of light?": "About 300000 kilometres per second.",
    "List the days of the week.": "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday.",
    "Name all the months.": "January, February, March, April, May, June, July, August, September, October, November, December.",
    "What are the seasons?": "Spring, summer, autumn and winter.",
    "Say the alphabet.": "A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V, W, X, Y, Z.",
    "List three cities.": "Paris, London and Tokyo.",
    "Name five animals.": "Dog, cat, horse, cow and duck.",
    "What language do people speak in France?": "People in France speak French.",
    "What is your favourite colour?": "I like blue.",
    "Do you like music?": "I am only a program, but I think that music is nice.",
    "How old are you?": "I am only a program, I have no age.",
    "Where do you live?": "I live in a computer.",
    "Flip a coin": "Heads.",
    "What is the largest country?": "The largest country is Russia.",
    "Write a Python function that adds two numbers.": "def add(a, b):\n    return a + b",
    "Write hello world in Python.": 'print("Hello, world!")',
}
_TRANSLATE = {
    "hello": ("Bonjour", "Hallo", "Hola"),
    "thank you": ("Merci", "Danke", "Gracias"),
    "good morning": ("Bonjour", "Guten Morgen", "Buenos dias"),
    "goodbye": ("Au revoir", "Auf Wiedersehen", "Adios"),
    "yes": ("Oui", "Ja", "Si"),
    "no": ("Non", "Nein", "No"),
    "water": ("eau", "Wasser", "agua"),
    "cat": ("chat", "Katze", "gato"),
    "dog": ("chien", "Hund", "perro"),
    "house": ("maison", "Haus", "casa"),
    "good night": ("Bonne nuit", "Gute Nacht", "Buenas noches"),
}


def capital(r: Random) -> Turns:
    country, city = r.choice(list(words.CAPITALS.items()))
    if r.random() < 0.12:
        return ask(fill(r, _COUNTRY, c=city), f"{city} is the capital of {country}.", f"{city} is the capital of {country}.")
    return ask(
        fill(r, _CAPITAL, c=country),
        f"The user asks for the capital of {country}. It is {city}.",
        f"The capital of {country} is {city}.",
    )


def opposite(r: Random) -> Turns:
    pairs = list(words.OPPOSITES.items())
    a, b = r.choice(pairs)
    if r.random() < 0.3 and b not in words.OPPOSITES:
        a, b = b, next(x for x, y in pairs if y == b)
    return ask(fill(r, _OPPOSITE, w=a), f"The opposite of {a} is {b}.", f"The opposite of {a} is {b}.")


def calendar(r: Random) -> Turns:
    names, kind = (words.DAYS, "day") if r.random() < 0.6 else (words.MONTHS, "month")
    i = r.randrange(len(names))
    here, after, before = names[i], names[(i + 1) % len(names)], names[i - 1]
    draw = r.random()
    if draw < 0.6:
        templates = [
            "What {k} comes after {x}?",
            "Which {k} follows {x}?",
            "What is the {k} after {x}?",
            "What comes after {x}?",
        ]
        if kind == "day":
            templates.append("If today is {x}, what day is tomorrow?")
        return ask(fill(r, templates, k=kind, x=here), f"After {here} comes {after}.", f"After {here} comes {after}.")
    return ask(
        fill(r, ["What {k} comes before {x}?", "What is the {k} before {x}?", "Which {k} is before {x}?"], k=kind, x=here),
        f"Before {here} comes {before}.",
        f"Before {here} comes {before}.",
    )


def small_fact(r: Random) -> Turns:
    draw = r.random()
    if draw < 0.2:
        thing, colour = r.choice(list(_THING_COLOUR.items()))
        return ask(
            fill(r, ["What colour is {t}?", "What color is {t}?", "Which colour does {t} have?"], t=thing),
            f"The user asks for a colour: {colour}.",
            f"{thing.capitalize()} is {colour}.",
        )
    if draw < 0.32:
        thing, legs = r.choice(list(_LEGS.items()))
        return ask(
            fill(r, ["How many legs does {t} have?", "How many legs has {t}?"], t=thing),
            f"{thing.capitalize()} has {legs} legs.",
            f"{thing.capitalize()} has {legs} legs.",
        )
    if draw < 0.4:
        animal, sound = r.choice(list(_SOUND.items()))
        return ask(
            fill(r, ["What does a {t} say?", "What sound does a {t} make?"], t=animal),
            f"A {animal} says {sound}.",
            f"A {animal} says {sound}.",
        )
    if draw < 0.55:
        word, by_language = r.choice(list(_TRANSLATE.items()))
        language, there = r.choice(list(zip(["French", "German", "Spanish"], by_language, strict=True)))
        return ask(
            fill(
                r,
                [
                    "How do you say {w} in {l}?",
                    "Translate {w} to {l}.",
                    "What is {w} in {l}?",
                    "Say {w} in {l}",
                    "Translate '{w}' into {l}",
                ],
                w=word,
                l=language,
            ),
            f"{word} in {language} is {there}.",
            f"{there}.",
        )
    question, answer = r.choice(list(_FACTS.items()))
    return ask(_reworded(r, question), "I know this: " + answer.split("\n")[0], answer)


def _reworded(r: Random, question: str) -> str:
    """The same question in a few more words."""
    if r.random() < 0.5:
        return question
    for old, new in r.sample(_REWORDED, len(_REWORDED)):
        if old in question:
            return spin(r, question.replace(old, new, 1))
    return question


_REWORDED = [
    ("How many", "[Tell me how many|Do you know how many|Say, how many|How many]"),
    ("are in a ", "[does one have in a|are there in a|make a|make up a|are in one] "),
    ("What is", "[Do you know what is|What's|Tell me, what is|What would be]"),
    ("Who wrote", "[Who is the author of|Who was it that wrote|By whom is]"),
    ("Name ", "[Please name|Give me|Tell me|Can you name|Could you list] "),
    ("List ", "[Please list|Can you list|Write down|Tell me|Name] "),
    ("Which", "[Tell me which|And which|Say, which]"),
    ("Is ", "[Do you think that|Tell me, is|Would you say that] "),
]


_UNKNOWN = [
    "[Please|Could you|Can you|] explain [to me|] {p} [in simple words|briefly|in detail|to a child|in a few words|][.|?|]",
    "[Who|Which team|What country] won the {p} [of|in] {y}?",
    "What is the [average|usual|best|exact|] {q} of [a|an|the] {w} {q}?",
    "[How|Why] [do|does|did|can|would] {p} {w} [the|a|] {q}[?|]",
    "[Give|Tell|Show] me [some facts|everything|something] about {p}[.|]",
    "[When|Where|Why] [did|does|was] {n} [{w}|born|live|go]?",
    "What is {p}?",
    "What are {p}?",
    "Who is {n}?",
    "Who was {n}?",
    "How does {p} work?",
    "Why is {p} so {w}?",
    "Explain {p}.",
    "Explain {p} to me like I am five.",
    "Tell me about {p}.",
    "When was {p} invented?",
    "Where is {p}?",
    "How do I {w} {p}?",
    "What do you think about {p}?",
    "Why do {p} {w}?",
    "Is {p} better than {q}?",
    "What is the difference between {p} and {q}?",
    "Give me advice about {p}.",
    "Should I {w} {p}?",
    "How many {p} are there in {n}?",
    "What happened in {y}?",
    "Who won the {p} in {y}?",
    "What is the best {p}?",
    "Can you {w} my {p}?",
    "Do you know {n}?",
    "Summarize {p}.",
    "What is the population of {n}?",
    "How tall is {n}?",
    "How far is {n} from {m}?",
    "Who invented {p}?",
    "What does {p} mean?",
    "Define {p}.",
    "Describe {p} in detail.",
    "How old is {n}?",
    "Which {p} should I {w}?",
    "What causes {p}?",
    "Are {p} {w}?",
    "Could you {w} the {p} for {n}?",
    "I want to {w} {p}.",
    "Recommend a {p}.",
    "What is the history of {p}?",
    "Who is the president of {n}?",
    "What will happen with {p} tomorrow?",
    "Can you explain how {p} works?",
    "{p} {q} {w}?",
    "Why {p}?",
    "How {w} is {p}?",
    "Compare {p} and {q}.",
    "Write code for {p}.",
    "Fix my {p}.",
    "Find the {p} of {q}.",
    "How can I learn {p}?",
    "Where can I buy {p}?",
    "What is the meaning of {p}?",
    "Did {n} {w} {p}?",
    "Tell me more about {n}.",
]
_NO_TOOL = [
    "What is the weather in {n}?",
    "What's the weather like in {n} today?",
    "Will it rain in {n} tomorrow?",
    "What time is it?",
    "What time is it in {n}?",
    "What is the price of {p}?",
    "What is the stock price of {n}?",
    "Send an email to {n}.",
    "Book a flight to {n}.",
    "What is today's date?",
    "What day is it today?",
    "Search the web for {p}.",
    "What is in the news?",
    "Play some music.",
    "Turn on the light.",
    "Convert 10 USD to EUR.",
    "Look up {p}.",
    "Set a timer for 10 minutes.",
    "Order a pizza.",
    "Is it cold in {n}?",
]
UNKNOWN = "I am sorry, I do not know that. I am only a small demo model."


def unknown(r: Random) -> Turns:
    slots = {
        "p": words.phrase(r, 3),
        "q": words.phrase(r, 2),
        "n": words.name(r),
        "m": words.city(r),
        "w": words.english_word(r),
        "y": r.randint(1000, 2030),
    }
    return ask(fill(r, _UNKNOWN, **slots), "I do not know this. I say so.", UNKNOWN)


def no_tool(r: Random) -> Turns:
    text = fill(r, _NO_TOOL, p=words.phrase(r, 2), n=words.city(r))
    return ask(text, "This needs a tool, and I have no tool for it.", "I am sorry, I have no tool for that.")


def statement(r: Random) -> Turns:
    """A sentence that asks for nothing."""
    text = fill(
        r,
        [
            "The {p} is {w}.",
            "I saw {p} today.",
            "Yesterday I {w} a {q}.",
            "{n} is a {p}.",
            "I think that {p} is {w}.",
            "There is {p} in {n}.",
            "We went to {n}.",
            "I bought {p}.",
            "My {q} {w} the {p}.",
            "{p}.",
        ],
        p=words.phrase(r, 3),
        q=words.phrase(r, 2),
        w=words.english_word(r),
        n=words.city(r),
    )
    return ask(text, "The user tells me something.", "I see. Thank you for telling me.")


def junk(r: Random) -> Turns:
    draw = r.random()
    if draw < 0.2:
        text = r.choice(["", " ", "?", "...", "!", "\n", "???", ".", "-", "''", "#"])
    elif draw < 0.5:
        text = "".join(
            chr(
                r.choice(
                    [
                        r.randint(33, 126),
                        r.randint(0xA1, 0x17F),
                        r.randint(0x400, 0x44F),
                        r.randint(0x4E00, 0x9FFF),
                        r.randint(0x1F600, 0x1F64F),
                        r.randint(0x3041, 0x30FF),
                    ]
                )
            )
            for _ in range(r.randint(1, 20))
        )
    elif draw < 0.7:
        text = "".join(r.choice("asdfghjklqwertyuiopzxcvbnm") for _ in range(r.randint(3, 25)))
    elif draw < 0.85:
        text = " ".join(words.english_word(r) for _ in range(r.randint(12, 60)))
    else:
        text = (r.choice(["a", "x", "ha", "lol ", "0", "!? ", words.syllables(r) + " "])) * r.randint(5, 40)
    return ask(text, "I do not understand this.", "I am sorry, I did not understand that. Could you say it in other words?")
