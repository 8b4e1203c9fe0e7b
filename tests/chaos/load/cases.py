"""Cases of the load: the request body of each response and the behaviour of its client, chosen by the seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, TypeAlias

from tests.support.request_bodies import ADD, PERSON, WEATHER, Body

Way: TypeAlias = Literal["stream", "post", "poll", "resume"]

NAMES = ("Ada", "Grace", "Linus", "Ngozi", "Mei")
CITIES = ("Paris", "Tokyo", "Lagos", "Lima", "Oslo")
THINGS = ("a dragon", "a lighthouse", "a robot", "the sea")


@dataclass(frozen=True, slots=True)
class Case:
    """Case of the load: a single response.

    `way`: a foreground stream, a plain POST, background that is polled, or a background stream whose client comes back after
    `leaves` events. Cancelled when `cancels` events were seen, deleted when `deletes` were. `tails` more clients follow it. With
    `quits` the client of the foreground goes for good after so many events, with `hangs` after so many seconds, whatever has come.
    `retries`: where a POST breaks it is sent again, and nobody looks what has become of the first one. `answers` a call with an
    output, as a second turn.
    """

    number: int
    kind: str
    body: Body
    way: Way = "stream"
    leaves: int | None = None
    cancels: int | None = None
    deletes: int | None = None
    quits: int | None = None
    hangs: float | None = None
    retries: bool = False
    tails: int = 0
    answers: bool = False
    conversation: bool = False

    @property
    def stored(self) -> bool:
        """Return whether the response can be found afterwards."""
        return bool(self.body.get("store", True)) or self.way in ("poll", "resume")

    @property
    def chancy(self) -> bool:
        """Return whether a grammar binds the response and sampling is random, so that no process can continue it exactly."""
        bound = "text" in self.body or self.body.get("tool_choice", "auto") not in ("auto", "none")
        return bound and self.body.get("temperature", 1) > 0


def story(chance: Random, least: int = 60, most: int = 250) -> Body:
    """Return a body whose answer reaches its token limit, or nearly."""
    text = f"Tell me a long story about {chance.choice(THINGS)}."
    return {"input": text, "max_output_tokens": chance.randint(least, most), "temperature": chance.choice((0, 1))}


def weather(chance: Random) -> Body:
    """Return a body that leads to a tool call."""
    text = f"What is the weather in {chance.choice(CITIES)}?"
    return {"input": text, "tools": [WEATHER], "max_output_tokens": 250, "temperature": 0}


def greeting(chance: Random) -> Body:
    """Return a body with a short answer."""
    return {"input": f"Hi, my name is {chance.choice(NAMES)}.", "max_output_tokens": 120}


def person(chance: Random) -> Body:
    """Return a body with structured output."""
    shape = {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}}
    text = f"{chance.choice(NAMES)} is a person. HttpAnswer as JSON."
    return {"input": text, "text": shape, "max_output_tokens": 400, "temperature": chance.choice((0, 0, 1))}


def _streamed(number: int, chance: Random) -> Case:
    return Case(number, "streamed", chance.choice((story, greeting))(chance))


def _posted(number: int, chance: Random) -> Case:
    return Case(number, "not streamed", story(chance, 30, 120), "post")


def _polled(number: int, chance: Random) -> Case:
    return Case(number, "background, polled", story(chance), "poll")


def _resumed(number: int, chance: Random) -> Case:
    return Case(number, "background, resumed", story(chance), "resume", leaves=chance.randint(1, 60))


def _tailed(number: int, chance: Random) -> Case:
    return Case(number, "background, tailed", story(chance), "resume", leaves=chance.randint(1, 60), tails=3)


def _called(number: int, chance: Random) -> Case:
    return Case(number, "tools", weather(chance))


def _parallel(number: int, chance: Random) -> Case:
    one, two = chance.sample(CITIES, 2)
    body = {**weather(chance), "input": f"What is the weather in {one} and in {two}?", "max_output_tokens": 300}
    return Case(number, "tools, parallel", body, chance.choice(("stream", "poll")))


def _required(number: int, chance: Random) -> Case:
    choice: Any = chance.choice(("required", {"type": "function", "name": "add"}))
    body = {"input": "Add 2 and 3.", "tools": [WEATHER, ADD], "tool_choice": choice, "max_output_tokens": 250}
    return Case(
        number, "tools, required", {**body, "temperature": chance.choice((0, 0, 1))}, chance.choice(("stream", "resume"))
    )


def _answered(number: int, chance: Random) -> Case:
    return Case(number, "tools, two turns", weather(chance), answers=True)


def _structured(number: int, chance: Random) -> Case:
    return Case(number, "structured", person(chance), chance.choice(("stream", "poll", "post")))


def _weighed(number: int, chance: Random) -> Case:
    more = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    return Case(number, "logprobs", {**story(chance, 30, 120), **more}, chance.choice(("stream", "resume")))


def _fleeting(number: int, chance: Random) -> Case:
    return Case(number, "store: false", {**story(chance), "store": False})


def _conversed(number: int, chance: Random) -> Case:
    return Case(number, "conversation", greeting(chance), chance.choice(("stream", "poll")), conversation=True)


def _cancelled(number: int, chance: Random) -> Case:
    return Case(number, "cancelled", story(chance), "resume", cancels=chance.randint(2, 50))


def raced(number: int, chance: Random) -> Case:
    """Return a case that is cancelled about when it ends: one event for each token, and about five others."""
    body = story(chance, 20, 40)
    return Case(number, "cancelled at its end", body, "resume", cancels=body["max_output_tokens"] + chance.randint(-8, 3))


def _quitted(number: int, chance: Random) -> Case:
    return Case(number, "client left", story(chance), quits=chance.randint(1, 60))


def _hasty(number: int, chance: Random) -> Case:
    return Case(number, "client left at once", story(chance), chance.choice(("post", "stream")), hangs=chance.random() * 0.2)


def _retried(number: int, chance: Random) -> Case:
    return Case(number, "sent again", story(chance, 30, 120), "post", retries=True)


def _deleted(number: int, chance: Random) -> Case:
    return Case(number, "deleted", story(chance, 20, 80), "resume", deletes=chance.randint(2, 60))


KINDS: tuple[tuple[int, Callable[[int, Random], Case]], ...] = (
    (6, _streamed),
    (3, _posted),
    (3, _polled),
    (4, _resumed),
    (2, _tailed),
    (2, _called),
    (1, _parallel),
    (2, _required),
    (2, _answered),
    (2, _structured),
    (2, _weighed),
    (2, _fleeting),
    (2, _conversed),
    (2, _cancelled),
    (3, raced),
    (1, _quitted),
    (1, _hasty),
    (1, _retried),
    (2, _deleted),
)


def load(count: int, seed: int) -> list[Case]:
    """Return `count` cases, the same cases for the same seed."""
    chance = Random(f"load {seed}")
    makers = chance.choices([maker for _, maker in KINDS], [weight for weight, _ in KINDS], k=count)
    return [maker(number, chance) for number, maker in enumerate(makers)]
