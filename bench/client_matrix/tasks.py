"""Tasks of the client matrix: prompts, the files that the client finds, the check, and the answers of a recording."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bench.client_matrix import checks
from bench.client_matrix.outcome import Check

Way: TypeAlias = Literal["single", "memory", "tools", "schema", "stream", "image"]

FORECASTS = {"Paris": "Paris: 17 degrees, sunny", "Oslo": "Oslo: 23 degrees, rainy"}
PERSON = {"name": "Ada", "age": 36}
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
GREETING = 'def greet(name):\n    return "Hello, " + name\n'
PATCHED = GREETING.replace("Hello", "Goodbye")
PATCH = '*** Begin Patch\n*** Update File: greet.py\n@@\n-    return "Hello, " + name\n+    return "Goodbye, " + name\n*** End Patch\n'
# The number of bytes cannot be guessed.
DATA = "0123456789\n" * 123


@dataclass(frozen=True, slots=True)
class Task:
    """Task of a client. `way` names the function of the driver, `recording` the answers of a perfect model in order.

    An answer is a text, or a list of calls: names and arguments.
    """

    name: str
    way: Way
    prompts: list[str]
    check: Check
    recording: list[str | list[tuple[str, dict[str, str]]]]
    files: Mapping[str, str] = field(default_factory=dict)


def _call(*cities: str) -> list[tuple[str, dict[str, str]]]:
    return [("get_weather", {"city": city}) for city in cities]


def _shell(command: str) -> list[tuple[str, dict[str, str]]]:
    return [("exec_command", {"cmd": command})]


ANSWER = Task("answer", "single", ["What is 17 + 25?"], checks.contains("42"), ["17 + 25 is 42."])
MEMORY = Task(
    "memory",
    "memory",
    ["Hi! My name is Ada.", "What is my name?"],
    checks.contains("Ada"),
    ["Hello! How can I help you?", "Your name is Ada."],
)
OBJECT = Task(
    "schema",
    "schema",
    ["Ada is 36 years old. Who is this?"],
    checks.is_object(PERSON),
    [json.dumps(PERSON, separators=(",", ":"))],
)
IMAGE = Task("image", "image", ["What colour is the circle in this picture?"], checks.contains("red"), ["The circle is red."])
# Tasks of a client that is a library: the driver declares a function.
LIBRARY_TASKS = [
    ANSWER,
    MEMORY,
    Task(
        "call",
        "tools",
        ["What is the weather in Paris?"],
        checks.has_all(checks.has_calls("get_weather", [{"city": "Paris"}]), checks.contains("17")),
        [_call("Paris"), "It is sunny in Paris, with 17 degrees."],
    ),
    Task(
        "parallel",
        "tools",
        ["What is the weather in Paris and Oslo?"],
        checks.has_all(checks.has_calls("get_weather", [{"city": "Paris"}, {"city": "Oslo"}]), checks.contains("17", "23")),
        [_call("Paris", "Oslo"), "Paris has 17 degrees, and Oslo has 23 degrees."],
    ),
    OBJECT,
    Task("stream", "stream", ["Tell me a story about a dragon."], checks.is_streamed, ["Once there was a dragon."]),
    IMAGE,
]
# Tasks of Codex: the turns after the first resume the session.
CODEX_TASKS = [
    ANSWER,
    Task("resume", "memory", MEMORY.prompts, MEMORY.check, MEMORY.recording),
    OBJECT,
    IMAGE,
    Task(
        "read",
        "single",
        ["Read the file notes.txt. Which word follows 'password:' in it? Answer with that word."],
        checks.has_all(checks.ran_command("pelican"), checks.contains("pelican")),
        [_shell("cat notes.txt"), "pelican"],
        {"notes.txt": "user: ada\npassword: pelican\n"},
    ),
    Task(
        "write",
        "single",
        ["Create the file hello.txt. Its content is the line: hello world"],
        checks.has_file("hello.txt", "hello world"),
        [_shell("echo hello world > hello.txt"), "The file hello.txt exists."],
    ),
    Task(
        "patch",
        "single",
        ["Change the word Hello to Goodbye in the file greet.py. Use apply_patch."],
        checks.has_all(checks.has_file("greet.py", PATCHED), checks.has_patch),
        [_shell(f"apply_patch <<'EOF'\n{PATCH}EOF"), "greet.py says Goodbye."],
        {"greet.py": GREETING},
    ),
    Task(
        "command",
        "single",
        ["Run the command: wc -c data.txt\nHow many bytes does it count?"],
        checks.has_all(checks.ran_command(str(len(DATA))), checks.contains(str(len(DATA)))),
        [_shell("wc -c data.txt"), f"The file data.txt has {len(DATA)} bytes."],
        {"data.txt": DATA},
    ),
]
