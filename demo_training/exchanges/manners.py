"""System messages: plain ones, and those that ask for a manner of speaking."""

# Lists of phrases read better in long lines than one phrase per line.
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from demo_training.exchanges import words

PLAIN = [
    "You are a helpful assistant.",
    "You are a friendly assistant.",
    "Be helpful.",
    "You are a helpful AI assistant.",
    "Be brief.",
    "Answer the questions of the user.",
    "You are a kind and patient assistant.",
    "Be concise and clear.",
    "You are an assistant with tools.",
    "Use the tools when they help.",
    "Answer in English.",
    "You answer politely.",
    "Keep your answers short.",
    "You are a test assistant.",
    "Follow the instructions of the user.",
    "Think before you answer.",
]


@dataclass(frozen=True)
class Manner:
    system: str
    change: Callable[[str], str]


def plain(r: Random) -> str:
    if r.random() < 0.6:
        return r.choice(PLAIN)
    return r.choice(
        [
            "You are a {a} assistant for {p}.",
            "You help the people of {c}.",
            "You know a lot about {p}.",
            "You work for {n}. Be {a}.",
            "Today we talk about {p}.",
            "{p}. {q}.",
        ]
    ).format(a=words.english_word(r), p=words.phrase(r, 3), c=words.city(r), n=words.name(r), q=words.phrase(r, 5))


def ending(r: Random) -> Manner:
    w = words.phrase(r, 2)
    shape = r.choice(
        [
            "Always end with the word {w}.",
            "End every answer with {w}.",
            "End each reply with the word '{w}'.",
            "Finish every sentence with {w}.",
            'Always finish your answer with "{w}".',
            "Your answers must end with {w}.",
        ]
    )
    return Manner(shape.format(w=w), lambda t: f"{t} {w}")


def opening(r: Random) -> Manner:
    w = words.phrase(r, 2).capitalize()
    shape = r.choice(
        [
            "Begin every answer with {w}.",
            "Always start with the word {w}.",
            "Start each reply with '{w}'.",
            "Your answers must start with {w}.",
            'Start every answer with "{w}"',
        ]
    )
    return Manner(shape.format(w=w), lambda t: f"{w}! {t}")


def pirate(r: Random) -> Manner:
    shape = r.choice(
        [
            "You are a pirate.",
            "Talk like a pirate.",
            "Answer like a pirate.",
            "You are a pirate captain.",
            "Speak like a pirate",
        ]
    )
    return Manner(shape, lambda t: f"Arr! {t} Ahoy, matey!")


def loud(r: Random) -> Manner:
    shape = r.choice(
        [
            "Answer in capital letters.",
            "Always answer in uppercase.",
            "Write everything in capital letters.",
            "Speak only in CAPITAL LETTERS.",
            "Use upper case only",
            "Answer in all caps.",
        ]
    )
    return Manner(shape, str.upper)


def persona(r: Random) -> Manner:
    n = words.name(r)
    shape = r.choice(
        [
            "You are {n}, a helpful assistant.",
            "Your name is {n}.",
            "You are called {n}.",
            "You are {n}.",
            "Act as {n}.",
            "Your name is {n}. You are friendly.",
            "You are an assistant called {n}.",
        ]
    )
    return Manner(shape.format(n=n), lambda t: t.replace("I am a small demo model.", f"I am {n}."))


MANNERS = [ending, ending, opening, opening, pirate, loud, persona, persona]
