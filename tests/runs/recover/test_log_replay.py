"""Laws of a run that is made again from its log, at every place where it could have been cut."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import date
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.dialects.base import Turn
from responses_app.engine_interface import Chunk, GenerateRequest, Logprob, Sampling
from responses_app.protocol.conformance import StreamValidator
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.events import Event
from responses_app.protocol.reducer import fold
from responses_app.protocol.writer import Writer
from responses_app.runs.ids import new_id
from responses_app.runs.recover.log_replay import ReplayedRun, ReplayMismatch
from responses_app.runs.recover.log_replay import replay as replay_
from responses_app.store.log.token_log import Entry, RoundEnd, pack, unpack
from tests.support.api.case import HARMONY, TOOL, tokens
from tests.support.protocol.response_strategies import ENDINGS, response

MESSAGES = [
    "<|channel|>analysis<|message|>Let me thinkß 🦉🦉.<|end|><|start|>assistant",
    "<|channel|>commentary<|message|>I look it up, 日本語.<|end|><|start|>assistant",
    '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Zürich"}<|call|><|start|>assistant',
    "<|channel|>final<|message|>It is sunny 🌞, and warm.<|end|><|start|>assistant",
    "<|channel|>final<|message|>  \n<|end|><|start|>assistant",
]
WORDS = st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=4).map(lambda parts: tokens("".join(parts)))
Log = list[tuple[EventFrame, bytes | None]]


def turn() -> Turn:
    return Turn(items=[], today=date(2026, 1, 1), tools=[TOOL])


def replay(log: Log, parser: Any) -> ReplayedRun:
    async def no_round(number: int, output: Sequence[Any], spent: int) -> Any:
        raise AssertionError(number)

    return asyncio.run(replay_(log, GenerateRequest("r", (), Sampling(1)), parser, None, no_round))


def cut(ids: Sequence[int], sizes: Sequence[int], likely: bool) -> list[Chunk]:
    """The tokens in chunks of these sizes, over and over."""
    chunks: list[Any] = []
    at = 0
    while at < len(ids):
        size = sizes[len(chunks) % len(sizes)]
        part = tuple(ids[at : at + size])
        chunks.append(Chunk(part, tuple(Logprob(token, -0.25, [(token, -0.25)]) for token in part) if likely else ()))
        at += size
    return chunks


class LoggedRun:
    """Run without a run manager: `events` are published, `log` are the entries that the run would append."""

    def __init__(self, writer: Writer, parser: Any) -> None:
        self.writer, self.parser = writer, parser
        self.events: list[Event] = []
        self.log: Log = []
        self.fresh: list[Chunk] = []
        # Number of chunks received before each entry of the log.
        self.received: list[int] = []
        self.count = 0

    def publish(self, events: list[Event]) -> None:
        if not events:
            return
        self.events += events
        frames = [EventFrame(event["sequence_number"], event["type"], orjson.dumps(event)) for event in events]
        self.log += [(frame, None) for frame in frames[:-1]] + [(frames[-1], pack(self.fresh))]
        self.received += [self.count] * len(frames)
        self.fresh = []

    def receive(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            self.count += 1
            self.fresh.append(chunk)
            self.publish([event for piece in self.parser.feed(chunk) for event in self.writer.write(piece)])

    def end(self) -> None:
        self.publish([event for piece in self.parser.finish() for event in self.writer.write(piece)])
        self.publish(ENDINGS["complete"](self.writer))


@settings(max_examples=60, deadline=None)
@given(WORDS, st.lists(st.integers(1, 9), min_size=1, max_size=5), st.booleans(), st.booleans(), st.integers(0, 10**6))
def test_wherever_it_is_cut_it_goes_on_as_if_nothing_had_happened(
    ids: list[int], sizes: list[int], likely: bool, queued: bool, place: int
) -> None:
    chunks = cut(ids, sizes, likely)
    first = LoggedRun(
        Writer(response(status="queued" if queued else "in_progress", background=queued, tools=[TOOL]), new_id),
        HARMONY.parser_for(turn()),
    )
    first.publish(first.writer.open())
    if queued:
        first.publish(first.writer.start())
    first.receive(chunks)
    # The durable part ends with an append, which holds the chunks received for its events.
    ends = [at for at, (_, blob) in enumerate(first.log) if blob is not None] or [len(first.log) - 1]
    last = ends[place % len(ends)]
    log = first.log[: last + 1]
    parser = HARMONY.parser_for(turn())
    state = replay(log, parser)
    second = LoggedRun(state.writer, parser)
    received = first.received[last]
    assert state.tokens == [token for chunk in chunks[:received] for token in chunk.tokens]
    second.receive(chunks[received:])
    whole = [orjson.loads(frame.data) for frame, _ in log] + second.events
    known = {event["item"]["id"] for event in whole if event["type"] == "response.output_item.added"}
    assert len(known) == sum(event["type"] == "response.output_item.added" for event in whole)
    assert [event["sequence_number"] for event in whole] == list(range(len(whole)))
    assert [event["type"] for event in whole] == [event["type"] for event in first.events]
    assert [event.get("delta") for event in whole] == [event.get("delta") for event in first.events]
    second.end()
    whole = [orjson.loads(frame.data) for frame, _ in log] + [orjson.loads(orjson.dumps(event)) for event in second.events]
    check = StreamValidator()
    assert [broken for event in whole for broken in check.feed(event)] == []
    assert fold(whole) == whole[-1]["response"]


@pytest.mark.parametrize("change", ["other text", "no delta", "no tokens"])
def test_a_log_that_says_something_else_is_found_out(change: str) -> None:
    run = LoggedRun(Writer(response(tools=[TOOL]), new_id), HARMONY.parser_for(turn()))
    run.publish(run.writer.open())
    run.receive(cut(tokens(MESSAGES[0]), [1], likely=False))
    assert replay(run.log, HARMONY.parser_for(turn())).tokens == tokens(MESSAGES[0])[:-2]
    place = next(at for at, (frame, _) in enumerate(run.log) if frame.type.endswith(".delta"))
    frame, blob = run.log[place]
    other = EventFrame(frame.number, frame.type, frame.data.replace(b"Let", b"Get"))
    changes: dict[str, list[tuple[EventFrame, bytes | None]]] = {
        "other text": [(other, blob)],
        "no delta": [],
        "no tokens": [(frame, None)],
    }
    with pytest.raises(ReplayMismatch):
        replay([*run.log[:place], *changes[change], *run.log[place + 1 :]], HARMONY.parser_for(turn()))


LOGPROBS = st.builds(
    Logprob, st.integers(0, 2**31), st.floats(-50, 0), st.lists(st.tuples(st.integers(0, 2**31), st.floats(-50, 0)), max_size=3)
)
CHUNKS = st.lists(st.lists(st.tuples(st.integers(0, 2**32 - 1), LOGPROBS), min_size=1, max_size=5), min_size=1, max_size=4)


@given(CHUNKS, st.booleans(), st.booleans())
def test_engine_chunks_round_trip(chunks: list[Any], likely: bool, ended: bool) -> None:
    entries: list[Entry] = [
        Chunk(tuple(t for t, _ in part), tuple(one for _, one in part) if likely else ()) for part in chunks
    ]
    if ended:
        entries.append(RoundEnd(7, 3))
    data = pack(entries)
    assert data is not None
    assert unpack(data) == entries


def test_nothing_heard_is_nothing_kept() -> None:
    assert pack([]) is None
    assert pack([Chunk(finish="stop")]) is None


@pytest.mark.parametrize("sizes", [[1], [3], [1, 1, 1], [1, 2]])
def test_chunks_without_logprobs_come_back_as_the_same_chunks(sizes: list[int]) -> None:
    chunks = [Chunk(tuple(range(100_000, 100_000 + size))) for size in sizes]
    data = pack(chunks)
    assert data is not None
    assert unpack(data) == chunks
    assert len(data) <= 4 * sum(sizes) + 1 or sizes == [1, 2]
