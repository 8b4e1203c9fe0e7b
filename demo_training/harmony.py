"""Harmony: a dialogue as token ids for demo-harmony, written the way the harmony library writes it."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

from demo_training.chat import IGNORE, Sample
from demo_training.forms import Call, Dialogue, Result, Say, Turn, User
from responses_app.demo import o200k

# How many of the dialogues with calls end with one.
SHORT = 0.6
# What the library writes before a generation.
ASSISTANT = [200006, 173781]
START, END, MESSAGE, CHANNEL, RETURN, CALL = 200006, 200007, 200008, 200005, 200002, 200012


def _tokens(text: str) -> list[int]:
    ids: list[int] = o200k.encoding().encode(text, allowed_special="all")
    return ids


def _plain(text: str) -> list[int]:
    ids: list[int] = o200k.encoding().encode(text, disallowed_special=())
    return ids


def opening_messages(dialogue: Dialogue, r: Random) -> list[Any]:
    """The system message with a date and an effort, and the developer message with instructions and tools."""
    from openai_harmony import DeveloperContent, Message, ReasoningEffort, Role, SystemContent, ToolDescription

    system = SystemContent.new().with_reasoning_effort(
        r.choice([ReasoningEffort.LOW, ReasoningEffort.MEDIUM, ReasoningEffort.MEDIUM, ReasoningEffort.HIGH])
    )
    if r.random() < 0.8:
        system = system.with_conversation_start_date(f"{r.randint(2024, 2029)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}")
    if r.random() < 0.1:
        system = system.with_model_identity(r.choice(["You are a small demo model.", "You are a helpful assistant."]))
    out = [Message.from_role_and_content(Role.SYSTEM, system)]
    if dialogue.system or dialogue.tools or r.random() < 0.05:
        developer = DeveloperContent.new()
        if dialogue.system:
            developer = developer.with_instructions(dialogue.system)
        if dialogue.tools:
            developer = developer.with_function_tools(
                [ToolDescription.new(t.name, t.description, parameters=t.parameters) for t in dialogue.tools]
            )
        out.append(Message.from_role_and_content(Role.DEVELOPER, developer))
    return out


def opening(dialogue: Dialogue, r: Random) -> list[int]:
    from openai_harmony import Conversation

    ids: list[int] = o200k.encoding().render_conversation(Conversation.from_messages(opening_messages(dialogue, r)))
    return ids


class _Tape:
    """Ids with labels: what a message looks like in the history may differ from what should be generated."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.wanted: list[int] = []

    def given(self, ids: list[int]) -> None:
        self.ids += ids
        self.wanted += [IGNORE] * len(ids)

    def taught(self, ids: list[int], closing: int | None = None) -> None:
        """`closing` replaces the last id as the one to generate."""
        self.ids += ids
        self.wanted += ids if closing is None else [*ids[:-1], closing]


def _past_call(call: Call) -> list[int]:
    """As the library writes it."""
    return _tokens(f"<|channel|>commentary to=functions.{call.name} <|constrain|>json<|message|>") + _arguments(call)


def _call(call: Call) -> list[int]:
    """The same text, but the name begins with a token of its own: the dot in front of it would change how it is spelt (`spelling`)."""
    name = [*_tokens("<|channel|>commentary to=functions."), *_plain(call.name), *_tokens(" <|constrain|>json<|message|>")]
    return name + _arguments(call)


def _arguments(call: Call) -> list[int]:
    return [*_plain(json.dumps(call.arguments, ensure_ascii=False)), CALL]


def _live(tape: _Tape, say: Say, last: bool) -> None:
    """A generation of the running turn: analysis, then calls or the final answer. Calls that were answered are written by the library."""
    opening_ = _tokens("<|start|>assistant")
    tape.given(opening_)
    tape.taught([CHANNEL, *_plain("analysis"), MESSAGE, *_plain(say.think), END])
    for i, call in enumerate(say.calls):
        if last:
            tape.taught(opening_)
            tape.taught(_call(call), None if i == len(say.calls) - 1 else END)
        else:
            tape.given([*opening_, *_past_call(call)])
    if say.text:
        tape.taught(opening_)
        tape.taught([CHANNEL, *_plain("final"), MESSAGE, *_plain(say.text), END], RETURN)


def _past(tape: _Tape, say: Say) -> None:
    """A generation of an earlier turn: its analysis is gone, and only its content is worth learning."""
    for call in say.calls:
        tape.given(_tokens("<|start|>assistant"))
        tape.given(_past_call(call))
    if say.text:
        tape.given([*_tokens("<|start|>assistant"), CHANNEL, *_plain("final"), MESSAGE])
        tape.taught(_plain(say.text))
        tape.given([END])


def _given(turn: Turn) -> list[int]:
    if isinstance(turn, User):
        return [START, *_plain("user"), MESSAGE, *_plain(turn.text), END]
    if isinstance(turn, Result):
        return [
            *_tokens(f"<|start|>functions.{turn.name}<|channel|>commentary to=assistant<|message|>"),
            *_plain(turn.text),
            END,
        ]
    return []


def tape(dialogue: Dialogue, r: Random) -> tuple[list[int], list[int]]:
    """The ids of the conversation, and the id wanted at each place (IGNORE where nothing is taught)."""
    out = _Tape()
    out.given(opening(dialogue, r))
    turns = dialogue.turns
    final = max((i for i, t in enumerate(turns) if isinstance(t, Say) and t.text and i < len(turns) - 1), default=-1)
    for i, turn in enumerate(turns):
        if not isinstance(turn, Say):
            out.given(_given(turn))
        elif i > final:
            _live(out, turn, i == len(turns) - 1)
        else:
            _past(out, turn)
    return out.ids, out.wanted


def sample(dialogue: Dialogue, r: Random) -> Sample:
    """What is to be learnt. Calls are, where nothing comes behind them."""
    calling = [i for i, turn in enumerate(dialogue.turns) if isinstance(turn, Say) and turn.calls]
    if calling and r.random() < SHORT:
        dialogue = replace(dialogue, turns=dialogue.turns[: r.choice(calling) + 1])
    ids, wanted = tape(dialogue, r)
    return Sample(ids[:-1], wanted[1:])
