"""Pictures told in words, for a model that will have eyes: what it sees stands in the message as `[picture: red circle]`."""

# Lists of phrases read better in long lines than one phrase per line.
from __future__ import annotations

from collections.abc import Callable
from random import Random

from demo_training.forms import Say, Turns, User, fill

# Colours are one token each, shapes at most three.
COLOURS = ("red", "green", "blue", "yellow", "orange", "purple", "pink", "brown", "black", "white", "grey")
SHAPES = ("circle", "square", "triangle", "star", "cross", "heart", "ring", "diamond")
_WHAT = [
    "What [do you see|is this|is that|is shown here|can you see][?|]",
    "What [is|do you see] [in|on] [the|this] [picture|image|photo][?|]",
    "[Please|Can you|Could you|] [describe|look at|tell me about] [the|this] [picture|image|photo][.|?|]",
    "[Describe|Name] what you see[.|]",
    "What does [the|this] [picture|image] show[?|]",
    "[Look!|Here is a picture.|See this image.|]",
]
_COLOUR = [
    "[What|Which] [colour|color] is [it|this|that|the {s}|the shape|the thing][?|]",
    "[Tell me|Name|Say] the [colour|color] [of the {s}|of the shape|][.|]",
    "What [colour|color] does the [{s}|shape|thing] [in the picture|in the image|] have[?|]",
    "[Which|What] [colour|color] [do you see|is in the picture|is shown][?|]",
]
_SHAPE = [
    "[What|Which] [shape|form|figure] is [it|this|that|in the picture|shown here|the {c} thing][?|]",
    "[Tell me|Name|Say] the [shape|form][.|]",
    "[Which|What] [shape|form] [do you see|does it have][?|]",
    "What is the {c} [shape|thing|figure][?|]",
]
_IS_IT = ["Is [it|this|that|there] a {x}[?|]", "Do you see a {x}[?|]", "Does the [picture|image] show a {x}[?|]"]


def shown(colour: str, shape: str) -> str:
    """The words that stand for a picture."""
    return f"[picture: {colour} {shape}]"


def _asked(r: Random, picture: str, question: str) -> User:
    return User(r.choice(["{p}\n{q}", "{p}\n{q}", "{q}\n{p}", "{p} {q}"]).format(p=picture, q=question).strip())


def seen(r: Random) -> Turns:
    """One picture and a question about it."""
    colour, shape = r.choice(COLOURS), r.choice(SHAPES)
    return [_asked(r, shown(colour, shape), (found := _question(r, colour, shape))[0]), Say(_thought(colour, shape), found[1])]


def _thought(colour: str, shape: str) -> str:
    return f"The picture shows {_a(colour)} {shape}."


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeio" else f"a {word}"


def _question(r: Random, colour: str, shape: str) -> tuple[str, str]:
    """A question, and the right answer."""
    draw = r.random()
    if draw < 0.5:
        return fill(r, _WHAT), f"I see {_a(colour)} {shape}."
    if draw < 0.7:
        return fill(r, _COLOUR, s=shape), f"The {shape} is {colour}."
    if draw < 0.88:
        return fill(r, _SHAPE, c=colour), f"It is a {shape}."
    other = r.choice([shape, r.choice(SHAPES)])
    return fill(
        r, _IS_IT, x=other
    ), f"Yes, it is {_a(colour)} {shape}." if other == shape else f"No, it is {_a(colour)} {shape}."


def asked_again(r: Random) -> Turns:
    """A picture, and a second question about it in the next turn."""
    colour, shape = r.choice(COLOURS), r.choice(SHAPES)
    (one, first), (two, second) = _question(r, colour, shape), _question(r, colour, shape)
    thought = _thought(colour, shape)
    return [_asked(r, shown(colour, shape), one), Say(thought, first), User(two), Say(thought, second)]


def two_pictures(r: Random) -> Turns:
    """Two pictures in one message."""
    first, second = ((c, s) for c, s in zip(r.sample(COLOURS, 2), r.sample(SHAPES, 2), strict=True))
    question = fill(
        r,
        [
            "[What|Which things] do you see[?|]",
            "[Describe|Name|Compare] the [two|] [pictures|images][.|]",
            "What [is|do you see] in the [pictures|images][?|]",
        ],
    )
    told = f"{_a(first[0])} {first[1]} and {_a(second[0])} {second[1]}"
    return [_asked(r, f"{shown(*first)}\n{shown(*second)}", question), Say(f"The pictures show {told}.", f"I see {told}.")]


PICTURES: list[Callable[[Random], Turns]] = [seen, seen, seen, asked_again, two_pictures]
