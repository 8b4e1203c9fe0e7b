"""Greedy answers to the hand-written cases, counted per skill: `python -m demo_training.evaluate demo-chat`."""

# A command line prints.
# ruff: noqa: T201
from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from demo_training import chat, harmony
from demo_training.cases import CASES, Case
from demo_training.forms import Call, Dialogue, Say, User
from responses_app.demo import o200k
from responses_app.demo.build import build

LONGEST = 700


@dataclass(frozen=True)
class Answer:
    text: str
    calls: list[Call]
    length: int
    raw: str


def chat_prompt(case: Case, tokenizer: Any) -> list[int]:
    given = Dialogue([*case.turns, Say("", "x")], case.skill, case.system, case.tools, case.thinking)
    parts = chat.segments(given)[:-2]
    ids: list[int] = tokenizer("".join(s.text for s in parts), add_special_tokens=False).input_ids
    return ids


def harmony_prompt(case: Case, _: Any) -> list[int]:
    given = Dialogue(case.turns, case.skill, case.system, case.tools)
    ids, _labels = harmony.tape(given, Random(3))
    return [*ids, *harmony.ASSISTANT]


def read_chat(ids: list[int], tokenizer: Any) -> Answer:
    raw = tokenizer.decode(ids, skip_special_tokens=False)
    text = raw.split("</think>")[-1].split("<|im_end|>")[0]
    calls = [_call(body) for body in re.findall(r"<tool_call>\n(.*?)\n</tool_call>", text, re.S)]
    return Answer(
        re.sub(r"<tool_call>.*?</tool_call>", "", text, flags=re.S).strip(),
        calls,
        len(ids) if raw.endswith("<|im_end|>") else -1,
        raw,
    )


def _call(body: str) -> Call:
    try:
        made = json.loads(body)
        return Call(made["name"], made["arguments"])
    except (ValueError, KeyError, TypeError):
        return Call("broken", {"body": body})


def read_harmony(ids: list[int], _: Any) -> Answer:
    from openai_harmony import HarmonyError, Role, StreamableParser

    raw = o200k.encoding().decode(ids)
    parser = StreamableParser(o200k.encoding(), Role.ASSISTANT)
    try:
        for i in ids:
            parser.process(i)
    except HarmonyError:
        return Answer("", [], -1, raw)
    messages = [(m.channel, m.recipient or "", "".join(getattr(c, "text", "") for c in m.content)) for m in parser.messages]
    calls = [
        _call(json.dumps({"name": r.removeprefix("functions.")})[:-1] + f', "arguments": {t}}}') for _, r, t in messages if r
    ]
    return Answer(
        "".join(t for c, r, t in messages if c == "final"),
        calls,
        len(ids) if ids[-1] in (harmony.RETURN, harmony.CALL) else -1,
        raw,
    )


def good(case: Case, answer: Answer) -> bool:
    """Every wanted piece is there (`a|b`: one of the two), the calls are the wanted ones, and the model came to an end."""
    if answer.length < case.least or answer.length < 0:
        return False
    text = answer.text if any(h.isupper() for h in case.has) else answer.text.lower()
    said = all(any(option in text for option in h.split("|")) for h in case.has)
    return said and _sorted(answer.calls) == _sorted(case.calls)


def _sorted(calls: list[Call]) -> list[str]:
    return sorted(json.dumps([c.name, c.arguments], sort_keys=True) for c in calls)


def run(name: str, folder: Path, verbose: bool) -> dict[str, list[bool]]:
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer, DynamicCache

    torch.set_num_threads(1)
    path = build(name, folder)
    is_chat = name == "demo-chat"
    auto: Any = AutoModelForImageTextToText if is_chat else AutoModelForCausalLM
    model: Any = auto.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    tokenizer = AutoTokenizer.from_pretrained(path) if is_chat else None
    prompt, read = (chat_prompt, read_chat) if is_chat else (harmony_prompt, read_harmony)
    stops = [tokenizer.convert_tokens_to_ids("<|im_end|>")] if tokenizer else [harmony.RETURN, harmony.CALL]
    scores: dict[str, list[bool]] = defaultdict(list)
    for case in CASES:
        if not is_chat and not case.thinking:
            continue
        ids = torch.tensor([prompt(case, tokenizer)])
        out = model.generate(
            ids,
            max_new_tokens=LONGEST if case.least else 200,
            do_sample=False,
            eos_token_id=stops,
            pad_token_id=0,
            attention_mask=torch.ones_like(ids),
            # Llama of transformers knows no windows of attention: the cache must have none either.
            past_key_values=DynamicCache(),
        )
        answer = read(out[0, ids.shape[1] :].tolist(), tokenizer)
        scores[case.skill].append(good(case, answer))
        if verbose or not scores[case.skill][-1]:
            asked = next(t.text for t in reversed(case.turns) if isinstance(t, User))
            print("good" if scores[case.skill][-1] else "BAD ", f"[{case.skill}] {asked!r} -> {answer.raw[:400]!r}", flush=True)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=["demo-chat", "demo-harmony"])
    parser.add_argument("--verbose", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scores = run(chosen.name, Path(folder), chosen.verbose)
    for skill, results in scores.items():
        print(f"{skill:12} {sum(results)}/{len(results)}")
    everything = [x for results in scores.values() for x in results]
    print(f"{'all':12} {sum(everything)}/{len(everything)}")


if __name__ == "__main__":
    main()
