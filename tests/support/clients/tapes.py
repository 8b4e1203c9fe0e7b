"""Tapes: lines of the model in harmony for each client, in the order of the requests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openai_harmony import HarmonyEncoding

NEXT = "<|end|><|start|>assistant"
PERSON = {"name": "Ada", "age": 36}
DIFF = "*** Begin Patch\n*** Add File: hello.txt\n+Hello!\n*** End Patch\n"

Line = tuple[str, str]


def text(answer: str, shown_input: str = "") -> Line:
    """A message. `shown_input` is a whole message or output that the prompt must have for this answer."""
    return f"<|channel|>final<|message|>{answer}<|return|>", shown_input


def thought(reason: str, answer: str, shown_input: str = "") -> Line:
    """A message behind reasoning."""
    return f"<|channel|>analysis<|message|>{reason}{NEXT}{text(answer)[0]}", shown_input


def calls(name: str, *arguments: dict[str, Any], shown_input: str = "") -> Line:
    """Build calls of a single function, behind reasoning."""
    call_texts = [
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json.dumps(one)}" for one in arguments
    ]
    return f"<|channel|>analysis<|message|>I need it.{NEXT}{NEXT.join(call_texts)}<|call|>", shown_input


# What clients return for the first lines of a tape.
USUAL_ANSWERS: dict[str, Any] = {
    "text": "Hello there!",
    "tools": [["Paris"], "It is sunny."],
    "parallel": [["Paris", "Oslo"], "Both are sunny."],
    "turns": ["One.", "Two."],
    "object": PERSON,
}
PARIS, OSLO = {"city": "Paris"}, {"city": "Oslo"}
# Every driver asks for these first: an answer, a stream, a tool loop, two calls at once, an object, two turns.
USUAL: list[Line] = [
    text("Hello there!"),
    thought("Hm.", "Forty-two."),
    calls("get_weather", PARIS),
    text("It is sunny.", shown_input="Paris: sunny"),
    calls("get_weather", PARIS, OSLO),
    text("Both are sunny.", shown_input="Oslo: sunny"),
    text(json.dumps(PERSON)),
    thought("First.", "One."),
    text("Two.", shown_input="One."),
]
# The turns of a client that keeps one connection open for all of them.
TALK: list[Line] = [*USUAL[:6], *USUAL[7:]]
# Where a line is silent for a while.
PAUSE = "\f"
SHELL: list[Line] = [calls("shell", {"commands": ["pwd"]}), text("Home.")]
CONVERSATION: list[Line] = [thought("Hm.", "Three."), text("Four.", shown_input="Three.")]
# A tool loop of Claude Code.
TEN_CALLS: list[Line] = [
    calls("Bash", {"command": "echo one > one.txt && cat one.txt"}),
    calls("Read", {"file_path": "one.txt"}, shown_input="one"),
    calls("Edit", {"file_path": "one.txt", "old_string": "one", "new_string": "two"}),
    calls("Write", {"file_path": "main.py", "content": "print(6 * 7)\n"}),
    calls("Bash", {"command": "python3 main.py"}),
    calls("Bash", {"command": "ls"}, shown_input="42"),
    calls("Read", {"file_path": "main.py"}, shown_input="main.py\none.txt"),
    calls("Edit", {"file_path": "main.py", "old_string": "7", "new_string": "8"}),
    calls("Bash", {"command": "python3 main.py"}),
    calls("Bash", {"command": "cat one.txt"}, shown_input="48"),
]
TAPES: dict[str, list[Line]] = {
    "openai-node": [*USUAL, *CONVERSATION, text("Five."), text("Ada was here."), text("Ada.")],
    "agents-node": [*USUAL, *CONVERSATION, *SHELL],
    "agents-node-chat": USUAL,
    "ai-openai": [*USUAL, *CONVERSATION, *SHELL, text("They said hello.")],
    "ai-anthropic": USUAL,
    "ai-open": [*USUAL, text("Hello there!")],
    "agents-python": [*USUAL, *CONVERSATION, *SHELL],
    "langchain": [*USUAL, *CONVERSATION, text("Higher.")],
    "pydantic-ai": [*USUAL, *CONVERSATION, text("Managed.")],
    "llamaindex": USUAL,
    "litellm": USUAL,
    "litellm-chat": USUAL,
    "anthropic": [*USUAL, *USUAL[2:4]],
    "langchain-chat": USUAL,
    "langchain-messages": USUAL,
    "smolagents": [*USUAL[:3], calls("final_answer", {"answer": "Sunny."}, shown_input="Observation:\nParis: sunny")],
    "dspy": [*USUAL[:3], USUAL[6]],
    # ADK sends the results of functions as JSON.
    "adk": [
        *USUAL[:3],
        text("It is sunny.", shown_input='{"result": "Paris: sunny"}'),
        USUAL[4],
        text("Both are sunny.", shown_input='{"result": "Oslo: sunny"}'),
        *USUAL[6:],
    ],
    "mastra": USUAL,
    "codex": [
        calls("exec_command", {"cmd": "echo made > made.txt"}),
        text("Made."),
        text("Resumed.", shown_input="Made."),
        text(json.dumps(PERSON)),
    ],
    "sockets": [
        text("Hello there!"),
        *[text("Hello there!")] * 3,
        thought("Hm.", "Forty-two."),
        *USUAL[2:4],
        text("Root."),
        *[text("Fork.", shown_input="Root.")] * 2,
        text("Looked.", shown_input="Look"),
        text(f"Once upon a time {PAUSE}"),
        text("Short.", shown_input="Short"),
        text("Hello there!"),
    ],
    "agents-node-sockets": TALK,
    "agents-python-sockets": TALK,
    "codex-sockets": [
        calls("exec_command", {"cmd": "echo made > made.txt"}),
        text("Made."),
        text("Resumed.", shown_input="Made."),
    ],
    # A name that Codex knows: it is given the patch tool, whose input has a grammar.
    "gpt-5.5": [calls("apply_patch", {"input": DIFF}), text("Patched.")],
    # Clients that `manage.py connect` configures: the first answer is for its check.
    "connected-codex": [text("Yes."), calls("exec_command", {"cmd": "echo made > made.txt"}), text("Made.")],
    # Besides the answer, opencode asks for a title, at any time.
    "connected-opencode": [text("Yes."), *[thought("Hm.", "Forty-two.")] * 3],
    "connected-claude-code": [text("Yes."), *TEN_CALLS, text("All ten are done.", shown_input="two"), text("Resumed.")],
    "connected-continue": [text("Yes."), calls("Bash", {"command": "echo made > made.txt"}), text("Made.")],
    # The file as a whole is how Aider lets models that it does not know write.
    "connected-aider": [text("Yes."), text("hello.py\n```\nprint('Hello!')\n```\n")],
    "connected-llm": [text("Yes."), thought("Hm.", "Forty-two.")],
    # A name that openai-agents compacts with.
    "gpt-5": [text("They said hello.")],
}


def record(folder: Path, encoding: HarmonyEncoding, tapes: Mapping[str, Sequence[Line]] = TAPES) -> list[str]:
    """Write the tapes, and return the models that `bin/serve` is to serve."""
    models = []
    for name, lines in tapes.items():
        tape = folder / f"{name}.jsonl"
        tape.write_text("".join(json.dumps(_line(line, encoding)) + "\n" for line in lines))
        models.append(f"{name}=script://{tape}")
    return models


def _line(line: Line, encoding: HarmonyEncoding) -> dict[str, Any]:
    output_text, shown_input = line
    chunks: list[dict[str, Any]] = []
    for place, part in enumerate(output_text.split(PAUSE)):
        chunks += [{"delay": 30}] if place else []
        chunks += [{"tokens": [token]} for token in _ids(part, encoding)]
    return {"chunks": chunks, "match": _ids(f"<|message|>{shown_input}<|end|>", encoding) if shown_input else None}


def _ids(output_text: str, encoding: HarmonyEncoding) -> Sequence[int]:
    ids: Sequence[int] = encoding.encode(output_text, allowed_special="all")
    return ids
