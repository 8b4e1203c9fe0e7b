"""The neutral form of a training conversation, before any chat template is applied."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

Json = dict[str, Any]
_CHOICE = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    parameters: Json

    def schema(self) -> Json:
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Json


@dataclass(frozen=True)
class User:
    text: str


@dataclass(frozen=True)
class Say:
    """One generation of the assistant: what it thinks, what it says, what it calls."""

    think: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    # The start of the text that a constraint of the engine imposes: not trained.
    imposed: str = ""


@dataclass(frozen=True)
class Result:
    """What a tool gave back."""

    name: str
    text: str


Turn = User | Say | Result
Turns = list[Turn]


@dataclass(frozen=True)
class Dialogue:
    turns: Turns
    skill: str
    system: str = ""
    tools: list[Tool] = field(default_factory=list)
    thinking: bool = True


def ask(question: str, think: str, answer: str) -> Turns:
    """The commonest exchange: a question, a thought, an answer."""
    return [User(question), Say(think, answer)]


def retext(turns: Turns, change: Any) -> Turns:
    """The same turns with `change` applied to everything that the assistant says."""
    return [replace(t, text=change(t.text)) if isinstance(t, Say) and t.text else t for t in turns]


def spin(r: Random, template: str) -> str:
    """One of the sentences that a template with `[this|that|]` stands for; the innermost brackets are chosen first."""
    while found := _CHOICE.search(template):
        template = template[: found.start()] + r.choice(found[1].split("|")) + template[found.end() :]
    return re.sub(r" +(?=[ .,?!]|$)", "", template).lstrip(" ")


def fill(r: Random, templates: list[str], **slots: object) -> str:
    return spin(r, r.choice(templates)).format(**slots)
