"""Recording of a perfect model: the right answers of all tasks, as a tape of the replay engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openai_harmony import HarmonyEncoding, load_harmony_encoding

from bench.client_matrix.tasks import CODEX_TASKS, LIBRARY_TASKS, Task
from responses_app.server.cli.model_specs import HARMONY

NAME = "recorded"
NEXT = "<|end|><|start|>assistant"


def write_recording(folder: Path, tasks: Sequence[Task] = (*LIBRARY_TASKS, *CODEX_TASKS), name: str = NAME) -> str:
    """Write the tape and return the value of `--model` for `bin/serve`. Each answer waits for the prompt of the task."""
    encoding = load_harmony_encoding("HarmonyGptOss")
    tape = folder / f"{name}.jsonl"
    distinct = {tuple(task.prompts): task for task in tasks}.values()
    tape.write_text("".join(json.dumps(line) + "\n" for task in distinct for line in _lines(task, encoding)))
    return f"{name}=script://{tape}?loop=1&tokenizer={HARMONY}"


def _lines(task: Task, encoding: HarmonyEncoding) -> list[dict[str, Any]]:
    """Make the lines of a task: the last answers wait for the last prompt, each earlier answer for the prompt of the turn."""
    spare = len(task.recording) - len(task.prompts)
    prompts = [*task.prompts, *[task.prompts[-1]] * spare]
    return [_line(prompt, answer, encoding) for prompt, answer in zip(prompts, task.recording, strict=True)]


def _line(prompt: str, answer: str | Sequence[tuple[str, dict[str, str]]], encoding: HarmonyEncoding) -> dict[str, Any]:
    match = encoding.encode(f"<|message|>{prompt}<|end|>", allowed_special="all")
    tokens = encoding.encode(_text(answer), allowed_special="all")
    return {"match": match, "chunks": [{"tokens": [token]} for token in tokens]}


def _text(answer: str | Sequence[tuple[str, dict[str, str]]]) -> str:
    if isinstance(answer, str):
        return f"<|channel|>final<|message|>{answer}<|return|>"
    calls = [
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json.dumps(arguments)}"
        for name, arguments in answer
    ]
    return f"<|channel|>analysis<|message|>I need it.{NEXT}{NEXT.join(calls)}<|call|>"
