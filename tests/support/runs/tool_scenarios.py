"""Drawn scenarios of responses with server tools: rounds, parallel calls, failures, approvals and calls of the client."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import orjson
from hypothesis import strategies as st

from responses_app.dialects.base import Dialect
from responses_app.engines.replay.engine import Delay, Recording, Tokens
from responses_app.engines.replay.tape import Step
from tests.support.runs.server_tools import START

# Number of scenarios of each dialect in a test; 500 in the environment for a long run.
EXAMPLES: Final = int(os.environ.get("SCENARIOS", "5"))
Kind: TypeAlias = Literal["safe", "unsafe", "raises", "bad_json", "wrong_type", "unknown", "approval", "client"]
# Function and name of the argument of each kind of call. The tools are those of `tests.support.mcp.program`.
FUNCTIONS: Final[Mapping[Kind, tuple[str, str]]] = {
    "safe": ("demo__weather", "city"),
    "unsafe": ("demo__count", "path"),
    "raises": ("demo__fail", "reason"),
    "bad_json": ("demo__weather", "city"),
    "wrong_type": ("demo__add", "a"),
    "unknown": ("demo__nothing", "x"),
    "approval": ("demo__delete", "path"),
    "client": ("get_weather", "city"),
}
CLIENT_TOOL: Final = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
MCP_TOOL: Final = {
    "type": "mcp",
    "server_label": "demo",
    "require_approval": {
        "always": {"tool_names": ["delete"]},
        "never": {"tool_names": ["add", "weather", "fail", "count"]},
    },
}
ANSWER: Final = "All is done."
# Number and length in seconds of the pauses of a slow round. A call of the MCP server takes about 10 ms.
PAUSES, PAUSE_S = 8, 0.02


@dataclass(frozen=True)
class DrawnRound:
    """Round that ends with calls. `chunk` is the number of tokens in each chunk of the engine.

    With `pauses` the engine is slow enough for results in the middle of the round.
    """

    calls: tuple[Kind, ...]
    thinks: bool
    speaks: bool
    chunk: int
    pauses: bool = False


@dataclass(frozen=True)
class Scenario:
    """Rounds with calls, and a last round with an answer. `cut` chooses an event of each response; `approves` answers approvals."""

    rounds: tuple[DrawnRound, ...]
    approves: bool
    cut: int


SCENARIOS: Final = st.builds(
    Scenario,
    st.lists(
        st.builds(
            DrawnRound,
            st.lists(st.sampled_from(sorted(FUNCTIONS)), min_size=1, max_size=3).map(tuple),
            st.booleans(),
            st.booleans(),
            st.sampled_from((1, 3, 50)),
            st.booleans(),
        ),
        max_size=4,
    ).map(tuple),
    st.booleans(),
    st.integers(0, 10_000),
)
Encode: TypeAlias = Callable[[str], list[int]]
WriteRound: TypeAlias = Callable[[DrawnRound, Sequence[tuple[str, str]]], str]


def harmony_text(drawn: DrawnRound, calls: Sequence[tuple[str, str]]) -> str:
    """Write a round as a gpt-oss model does. `calls` are functions with arguments."""
    parts = []
    if drawn.thinks:
        parts.append("<|channel|>analysis<|message|>I think.")
    if drawn.speaks:
        parts.append("<|channel|>commentary<|message|>I look.")
    parts += [f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{text}" for name, text in calls]
    if not calls:
        return f"<|end|>{START}".join([*parts, f"<|channel|>final<|message|>{ANSWER}<|return|>"])
    return f"<|end|>{START}".join(parts) + "<|call|>"


def chat_text(drawn: DrawnRound, calls: Sequence[tuple[str, str]]) -> str:
    """Write a round as a chat model with Hermes calls does. `calls` are functions with arguments."""
    made = "\n".join(f'<tool_call>\n{{"name": "{name}", "arguments": {text}}}\n</tool_call>' for name, text in calls)
    thought = "<think>\nI think.\n</think>\n\n" if drawn.thinks else ""
    text = ("I look.\n" if drawn.speaks else "") if calls else ANSWER
    return f"{thought}{text}{made}<|im_end|>"


def recordings(scenario: Scenario, write: WriteRound, encode: Encode, dialect: Dialect, folder: str) -> list[Recording]:
    """Return a recording for each round. The arguments of a round have a mark, by which the next recording knows its prompt."""
    last = DrawnRound((), thinks=True, speaks=False, chunk=2)
    tool_recordings = []
    for number, drawn in enumerate([*scenario.rounds, last]):
        calls = [
            (FUNCTIONS[kind][0], _arguments(kind, f"{folder}/{_mark(number)}-{at}")) for at, kind in enumerate(drawn.calls)
        ]
        ids = encode(write(drawn, calls))
        tool_recordings.append(Recording(_steps(drawn, ids), match=partial(_is_round, dialect, number)))
    return tool_recordings


def _steps(drawn: DrawnRound, ids: Sequence[int]) -> list[Step]:
    chunks = [Tokens(ids[at : at + drawn.chunk]) for at in range(0, len(ids), drawn.chunk)]
    if not drawn.pauses:
        return [*chunks]
    distance = -(-len(chunks) // PAUSES)
    steps: list[Step] = []
    for at, chunk in enumerate(chunks, 1):
        steps += [chunk] if at % distance else [chunk, Delay(PAUSE_S)]
    return steps


def answers(response: Mapping[str, Any], *, approve: bool) -> list[dict[str, Any]]:
    """Return the input that answers the open calls and the open requests for approvals of a response."""
    outputs: list[dict[str, Any]] = []
    for item in response["output"]:
        if item["type"] == "function_call":
            outputs.append({"type": "function_call_output", "call_id": item["call_id"], "output": "Dry."})
        elif item["type"] == "mcp_approval_request":
            outputs.append({"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": approve})
    return outputs


def without_ids(value: Any) -> Any:
    """Return items without the ids, which differ from run to run."""
    if isinstance(value, dict):
        return {key: without_ids(child) for key, child in value.items() if key not in ("id", "call_id", "approval_request_id")}
    return [without_ids(child) for child in value] if isinstance(value, list) else value


def _arguments(kind: Kind, value: str) -> str:
    text = orjson.dumps({FUNCTIONS[kind][1]: value}).decode()
    return text.replace('":"', '": nonsense "') if kind == "bad_json" else text


def _mark(number: int) -> str:
    return f"round-{number}"


def _is_round(dialect: Dialect, number: int, prompt: Sequence[int]) -> bool:
    """Return whether a prompt shows the calls of all rounds before `number`, and no later calls."""
    text = dialect.token_text(list(prompt))
    return _mark(number) not in text and (number == 0 or _mark(number - 1) in text)
