"""Long stories from a grammar: a fixed row of beats, so that a tiny model always knows how far it has come and when to stop."""

# Lists of phrases read better in long lines than one phrase per line.
from __future__ import annotations

from random import Random

from demo_training.exchanges import words
from demo_training.forms import Turns, ask, fill

_ASK = [
    "Tell me a story about {s}.",
    "Tell me a story about {s}",
    "Write a story about {s}.",
    "Write a long story about {s}.",
    "Tell me a long tale about {s}.",
    "Please tell me a tale about {s}.",
    "I would like to hear a story about {s}.",
    "Make up a story about {s}.",
    "Can you write a short story about {s}?",
    "Give me a bedtime story about {s}.",
    "Write me a fairy tale about {s}.",
    "Could you tell a story with {s} in it?",
    "Invent a long story about {s}, please.",
    "Write a very long story about {s}",
    "Tell me an adventure of {s}.",
    "I want a story about {s}.",
    "Write a detailed essay about {s}.",
    "Write a long text about {s}.",
    "Write three paragraphs about {s}.",
    "Write 500 words about {s}.",
    "Tell me everything you can about {s} in a long story.",
    "Story time! {s}, please.",
    "Write a long poem about {s}.",
    "Write an essay on {s}",
    "Write a paragraph about {s}.",
    "tell a story: {s}",
    "Tell a story of {s}.",
]
_NO_SUBJECT = [
    "Tell me a story.",
    "Write a story.",
    "Tell me a long story",
    "Can you tell me a story?",
    "Please write a long story.",
    "I am bored, tell me a tale.",
    "Write something long.",
    "Write a long text.",
    "tell me a story please",
]

# One row per beat; the beats always come in this order.
_BEATS: list[list[str]] = [
    ["Once upon a time there was {s} who lived {p}.", "Long ago {p} there lived {s}.", "Once there was {s}, far away {p}."],
    [
        "The name of {t} was {n}, and everybody {p2} knew it.",
        "People called {t} by the name {n}, and {n} liked it very much.",
        "Its name was {n}, and there was nobody kinder in the whole land.",
    ],
    [
        "One morning {n} woke up early and heard {noise} behind {thing}.",
        "One day {n} found {thing} in front of the door.",
        "One cold evening {n} saw {noise2} over the hills.",
    ],
    [
        "First {n} was afraid, but then curiosity was stronger than fear.",
        "First {n} wanted to go back to bed, but sleep would not come.",
        "First {n} laughed and thought that it was only the wind.",
    ],
    [
        "So {n} packed {food}, a map and a warm coat, and went on a long journey.",
        "So {n} took {food} and a small lamp, closed the door and walked into the world.",
        "So {n} filled a bag with {food} and set out before the sun was up.",
    ],
    [
        "The road led through {land}, where the trees were {c} and very old.",
        "The path went over {land}, and the sky turned {c} above it.",
        "For three days the way led across {land}, and every stone there was {c}.",
    ],
    [
        "There {n} met {h}, who was sitting on a stone and crying.",
        "In the middle of it stood {h}, who had lost the way home.",
        "There, under a big tree, {n} met {h}, who was very hungry.",
    ],
    [
        '"Why are you so sad?" asked {n}.',
        '"Can I help you?" asked {n} with a soft voice.',
        '"Do not be afraid of me," said {n} and came closer.',
    ],
    [
        '"Somebody has stolen {thing}," said {h2}, "and without it I can not go home."',
        '"I am looking for {thing}," answered {h2}, "but it is hidden in the dark."',
        '"I have lost {thing}," said {h2}, "and the night is coming soon."',
    ],
    [
        "{n} shared {food} with the new friend, and they made a plan together.",
        "They sat down, ate {food} and talked until the stars came out.",
        "Then {n} gave the new friend {food} and promised to help.",
    ],
    [
        "The next day they climbed a high mountain and crossed a deep river.",
        "The next day they walked until their feet hurt, but neither of them gave up.",
        "The next day a storm came up, and they hid in a cave until it was over.",
    ],
    [
        "At the top they found a door with {k} locks, and each lock asked a riddle.",
        "Behind the river stood a tower with {k} windows and no door at all.",
        "Deep inside they found a hall with {k} candles, and all of them were burning.",
    ],
    [
        "{h3} was clever and knew what to do, and {n} was brave enough to do it.",
        "{h3} whispered the right word, and {n} pushed with all strength.",
        "{h3} held the lamp, and {n} went ahead into the dark.",
    ],
    [
        'Suddenly a loud voice cried: "Who dares to come here?"',
        "Suddenly the ground began to shake and a shadow grew on the wall.",
        "Suddenly the light went out, and somebody laughed in the dark.",
    ],
    [
        'But {n} stood still and said: "We only want to bring back what was lost."',
        "But {n} did not run away and answered with a friendly smile.",
        "But {n} began to sing an old song, and the voice became quiet.",
    ],
    [
        "Then the shadow became small, for nobody had ever been kind to it before.",
        "Then the stranger came out of the dark and asked to be their friend.",
        "Then everything was silent, and the stranger opened a golden chest.",
    ],
    [
        "Inside lay {thing}, shining like the {c} moon.",
        "There it was: {thing}, as beautiful as on the first day.",
        "In it they found {thing}, and it was still warm and bright.",
    ],
    [
        "They thanked the stranger, danced with joy and hurried back to {land}.",
        "All three of them laughed, and together they went back over {land}.",
        "Full of joy they took it and ran home through {land}.",
    ],
    [
        "At home the whole village waited for them with music and {food}.",
        "At home there was a great feast with lanterns, songs and {food}.",
        "At home everybody wanted to hear the story again and again, and there was {food} for all.",
    ],
    [
        "From that day on {n} and {h2} were the best of friends.",
        "From that day on {n} was never alone again.",
        "From that day on nobody {p2} was afraid of the dark.",
    ],
    [
        "And {t}? It still lives there, and if you listen at night, you can hear it sing. The end.",
        "And so the story of {t} comes to a happy end. The end.",
        "And if they have not moved away, {t} and the friends live there still. The end.",
    ],
]
_PLACES = [
    "in a small village by the sea",
    "in an old castle",
    "in a house at the edge of the forest",
    "on a green island",
    "in a quiet valley",
    "under a bridge in a big city",
    "on top of a snowy hill",
]
_SHORT_PLACES = ["in the village", "in the valley", "near the sea", "in the forest"]
_THINGS = [
    "a golden key",
    "a silver bell",
    "a little clock",
    "a book without words",
    "a crystal ball",
    "a tiny boat",
    "a music box",
    "a red lantern",
]
_NOISE = ["a strange song", "a soft knock", "a deep hum", "the sound of bells"]
_NOISE2 = ["a bright light", "a falling star", "a thin line of smoke", "a flock of birds"]
_LANDS = [
    "the whispering forest",
    "the white desert",
    "the land of the giants",
    "the misty moor",
    "the valley of flowers",
    "the frozen lake",
]
_HELPERS = [
    "a tiny mouse",
    "an old fox",
    "a young owl",
    "a lonely robot",
    "a shy giant",
    "a small hedgehog",
    "a lost duck",
    "a grey rabbit",
]
_STORY_FOOD = ["some bread", "a bag of apples", "warm soup", "honey cakes", "sweet pancakes", "cheese and nuts"]
_HEROES = ["Milo", "Luna", "Pip", "Nora", "Otto", "Ruby", "Finn", "Ella", "Bruno", "Tilda"]


def _article(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" and not noun.startswith("uni") else "a ") + noun


def _subject(r: Random) -> tuple[str, str]:
    """A subject as asked for, with the way to name it again later."""
    noun = r.choice(words.ANIMALS) if r.random() < 0.65 else r.choice([words.syllables(r), words.english_word(r)])
    draw = r.random()
    if draw < 0.5:
        return _article(noun), f"the {noun}"
    if draw < 0.7:
        adjective = r.choice(
            [
                "brave",
                "little",
                "old",
                "lazy",
                "lonely",
                "clever",
                "tiny",
                "happy",
                "sad",
                "flying",
                words.english_word(r),
                *words.COLOURS[:5],
            ]
        )
        return _article(f"{adjective} {noun}"), f"the {noun}"
    if draw < 0.8:
        return f"the {noun}", f"the {noun}"
    if draw < 0.88:
        person = words.name(r)
        return person, person
    return words.plural(noun), words.plural(noun)


def story(r: Random, s: str, t: str) -> str:
    helper = r.choice(_HELPERS)
    bare = helper.split(" ", 1)[1]
    slots = {
        "s": s,
        "t": t,
        "n": r.choice(_HEROES),
        "p": r.choice(_PLACES),
        "p2": r.choice(_SHORT_PLACES),
        "thing": r.choice(_THINGS),
        "noise": r.choice(_NOISE),
        "noise2": r.choice(_NOISE2),
        "land": r.choice(_LANDS),
        "c": r.choice(words.COLOURS[:6]),
        "h": helper,
        "h2": f"the {bare}",
        "h3": f"The {bare}",
        "food": r.choice(_STORY_FOOD),
        "k": r.choice(["two", "three", "seven", "nine", "ten"]),
    }
    return " ".join(r.choice(beat).format(**slots) for beat in _BEATS)


def tale(r: Random) -> Turns:
    if r.random() < 0.12:
        noun = r.choice(words.ANIMALS)
        s, t = _article(noun), f"the {noun}"
        return ask(r.choice(_NO_SUBJECT), f"The user wants a story. I choose {s}.", story(r, s, t))
    s, t = _subject(r)
    return ask(fill(r, _ASK, s=s), f"The user wants a story about {s}. I tell a long one.", story(r, s, t))
