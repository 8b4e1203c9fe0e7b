"""ChatML with Hermes tool calls: a dialogue as token ids for demo-chat, and the tokenizer that it is written in."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from demo_training.exchanges import words
from demo_training.forms import Call, Dialogue, Json, Result, Say, Tool, Turn, User

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VISIBLE = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
IGNORE = -100
# Words, single digits, runs of punctuation. A leading space is a piece of its own, so that a word is cut the same way with and without it.
SPLIT = r"\p{L}+|\p{N}|[^\s\p{L}\p{N}]+| (?=\S)|\s+"


@dataclass(frozen=True)
class Sample:
    """Token ids with, for each position, the id that the model should say next."""

    ids: list[int]
    labels: list[int]


@dataclass(frozen=True)
class Segment:
    text: str
    # None: not trained. Otherwise the number of leading tokens that are not trained.
    skip: int | None = None


def tool_json(tool: Tool) -> str:
    full: Json = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return json.dumps({k: v for k, v in full.items() if v}, ensure_ascii=False)


def system_block(dialogue: Dialogue) -> str:
    if not dialogue.system and not dialogue.tools:
        return ""
    tools = "\n".join(map(tool_json, dialogue.tools))
    block = f"# Tools\n<tools>\n{tools}\n</tools>" if tools else ""
    gap = "\n\n" if block and dialogue.system else ""
    return f"<|im_start|>system\n{dialogue.system}{gap}{block}<|im_end|>\n"


def call_text(call: Call) -> str:
    body = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def said(say: Say) -> str:
    return "\n".join([say.text] * bool(say.text) + [call_text(c) for c in say.calls]) + "<|im_end|>"


def _assistant(say: Say, live: bool, last: bool, thinking: bool) -> list[Segment]:
    head = Segment("<|im_start|>assistant\n")
    if live and thinking:
        thought = f"<think>\n{say.think}\n</think>\n\n"
        # Behind an imposed start any thought may stand: these are not trained.
        return [head, *([Segment(thought), *_answer(say)] if say.imposed else [Segment(thought + said(say), 0)]), Segment("\n")]
    if live and last:
        return [head, Segment("<think>\n\n</think>\n\n"), *_answer(say), Segment("\n")]
    return [head, Segment(said(say), 1), Segment("\n")]


def _answer(say: Say) -> list[Segment]:
    """Split the answer behind what a constraint imposes."""
    if not say.imposed:
        return [Segment(said(say), 0)]
    return [Segment(say.imposed), Segment(said(say).removeprefix(say.imposed), 0)]


def _given(turn: Turn, before: Turn | None, after: Turn | None) -> Segment:
    if isinstance(turn, User):
        return Segment(f"<|im_start|>user\n{turn.text}<|im_end|>\n")
    text = turn.text if isinstance(turn, Result) else ""
    opening = "" if isinstance(before, Result) else "<|im_start|>user"
    closing = "" if isinstance(after, Result) else "<|im_end|>\n"
    return Segment(f"{opening}\n<tool_response>\n{text}\n</tool_response>{closing}")


def segments(dialogue: Dialogue) -> list[Segment]:
    """The conversation as the chat template writes it, cut where training starts and stops."""
    turns = dialogue.turns
    query = max(i for i, t in enumerate(turns) if isinstance(t, User))
    out = [Segment(system_block(dialogue))]
    for i, turn in enumerate(turns):
        if isinstance(turn, Say):
            out += _assistant(turn, i > query, i == len(turns) - 1, dialogue.thinking)
        else:
            out.append(_given(turn, turns[i - 1] if i else None, turns[i + 1] if i + 1 < len(turns) else None))
    return out


def sample(dialogue: Dialogue, tokenizer: Any) -> Sample:
    ids: list[int] = []
    trained: list[bool] = []
    for segment in segments(dialogue):
        new = tokenizer.encode(segment.text, add_special_tokens=False).ids if segment.text else []
        ids += new
        trained += [segment.skip is not None and i >= segment.skip for i in range(len(new))]
    return Sample(ids[:-1], [t if on else IGNORE for t, on in zip(ids[1:], trained[1:], strict=True)])


def full_text(dialogue: Dialogue) -> str:
    return "".join(s.text for s in segments(dialogue))


def _plain_tokenizer() -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _learn(texts: list[str], size: int) -> Json:
    from tokenizers import pre_tokenizers, trainers

    tokenizer = _plain_tokenizer()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False, max_token_length=12)
    )
    learned: Json = json.loads(tokenizer.to_str())
    return learned


def train_tokenizer(dialogues: Iterable[Dialogue], letters: int, spaced: int) -> str:
    """A byte-level BPE; merges with the leading space come last, so that they never change how a word is cut."""
    texts = [full_text(d) for d in dialogues]
    for token in SPECIAL + VISIBLE:
        texts = [t.replace(token, "\n") for t in texts]
    learned = _learn([*texts, " ".join(words.english()[:3000])], letters)
    vocab, merges = learned["model"]["vocab"], [tuple(m) for m in learned["model"]["merges"]]
    for piece, _ in _after_space(texts, learned).most_common(spaced):
        vocab.setdefault("Ġ" + piece, len(vocab))
        merges.append(("Ġ", piece))
    return _finished(vocab, merges)


def _after_space(texts: list[str], learned: Json) -> Counter[str]:
    """How often each piece opens a word that follows a space."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.dumps(learned))
    counts: Counter[str] = Counter()
    for text in texts:
        pieces = tokenizer.encode(text).tokens
        counts.update(b for a, b in pairwise(pieces) if a == "Ġ" and "Ġ" not in b and "Ċ" not in b and not b.isdigit())
    return counts


def _finished(vocab: dict[str, int], merges: list[tuple[str, str]]) -> str:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    # The space joins the next word only here, after the merges inside words have been learnt without it.
    joined = SPLIT.replace(r"\p{L}+|", r" ?\p{L}+|", 1).replace(r"[^\s\p{L}\p{N}]+|", r" ?[^\s\p{L}\p{N}]+|", 1)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(joined), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in VISIBLE])
    return tokenizer.to_str()
