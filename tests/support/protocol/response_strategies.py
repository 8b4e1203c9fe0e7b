"""Speeches to write: a full Response object, counted ids, strategies for legal speeches and ways to end them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from hypothesis import strategies as st

from responses_app.protocol.deltas import (
    Annotation,
    Arguments,
    Call,
    ClientCall,
    CodeCall,
    CodeResult,
    CodeStarted,
    Compaction,
    Delta,
    EndItem,
    FileResult,
    FileSearch,
    ForItem,
    McpApprovalRequest,
    McpCall,
    McpList,
    McpResult,
    McpTools,
    ReasoningDelta,
    SearchStarted,
    TextDelta,
    WebResult,
    WebSearch,
)
from responses_app.protocol.events import Event
from responses_app.protocol.writer import Writer

USAGE = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 12,
}
# Options of every Response of this module: property tests of a module with a summary change the entry.
REASONING_OPTIONS: dict[str, str | None] = {"effort": None, "summary": None, "context": None}
CITATION = {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "A page", "url": "https://example.org/"}
TOOL = {"name": "ask", "input_schema": {"type": "object"}, "description": "asks", "annotations": None}
TOOL_ERROR = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no"}]}
FOUND = {"file_id": "file_1", "filename": "a.txt", "score": 0.5, "text": "words", "attributes": {}}
SHELL = ClientCall("shell_call", {"action": {"commands": ["ls -l", "pwd"], "timeout_ms": None, "max_output_length": None}})
PATCH = ClientCall("apply_patch_call", {"operation": {"type": "update_file", "path": "a.txt", "diff": "@@\n-a\n+b"}})
COMPUTER = ClientCall(
    "computer_call", {"actions": [{"type": "click", "button": "left", "x": 1, "y": 2}], "pending_safety_checks": []}
)
SEARCHED = {"type": "search", "query": "words", "queries": ["words"]}


def response(**changes: Any) -> dict[str, Any]:
    """A Response about to begin, with every key of table 1.3."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": "demo",
        "output": [],
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": dict(REASONING_OPTIONS),
        "safety_identifier": None,
        "service_tier": "auto",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "metadata": {},
        **changes,
    }


def counted() -> Callable[[str], str]:
    """A mint that counts, so that two writers of the same speech give the same ids."""
    numbers = count()
    return lambda prefix: f"{prefix}{next(numbers)}"


def writer(**changes: Any) -> Writer:
    """A writer about to open."""
    return Writer(response(**changes), counted())


Ending = Callable[[Writer], list[Event]]

ENDINGS: dict[str, Ending] = {
    "complete": lambda w: w.complete(1_790_000_009, USAGE, service_tier="default"),
    "cut": lambda w: w.end_incomplete("max_output_tokens", 1_790_000_009, USAGE, service_tier="default"),
    "fail": lambda w: w.fail("engine_down", "The engine is gone.", usage=USAGE),
    "fail quietly": lambda w: w.fail("server_error", "The engine is gone.", emit_error_event=False),
    "cancel": lambda w: w.cancel(),
}


def write_response(pieces: Iterable[Delta], ending: str = "complete", **changes: Any) -> tuple[list[Event], Writer]:
    """Write a whole response, and return the events and the writer."""
    w = writer(**changes)
    events = w.open()
    if changes.get("status") == "queued":
        events += w.start()
    for piece in pieces:
        events += w.write(piece)
    return events + ENDINGS[ending](w), w


def kinds(events: Iterable[Event]) -> list[str]:
    """The types of the events between `in_progress` and the ending, without `response.`."""
    life = ("created", "queued", "in_progress", "completed", "incomplete", "failed")
    names = [event["type"].removeprefix("response.") for event in events]
    return [name for name in names if name not in life]


def items(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The output of the terminal snapshot."""
    output: list[dict[str, Any]] = events[-1]["response"]["output"]
    return output


# Strategies

words = st.text(alphabet='ab \n"\\{é漢😀', max_size=6)
short_texts = st.text(alphabet='ab \n"\\{é漢😀', min_size=1, max_size=6)
phases = st.sampled_from([None, None, "commentary", "final_answer"])
_token = st.builds(
    lambda text: {"token": text, "logprob": -0.5, "bytes": list(text.encode()), "top_logprobs": []},
    st.sampled_from(["a", "é"]),
)
texts = st.builds(TextDelta, words, st.lists(_token, max_size=2), phases)


def _chunks(text: str) -> st.SearchStrategy[list[Delta]]:
    cuts = st.lists(st.integers(0, len(text)), max_size=3)
    return cuts.map(lambda at: [Arguments(text[i:j]) for i, j in zip([0, *sorted(at)], [*sorted(at), len(text)], strict=True)])


objects = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 9) | short_texts, max_size=2).map(json.dumps)
json_arguments = (objects | st.just("")).flatmap(_chunks)
free_arguments = words.flatmap(_chunks)


def _calls(kind: Any, arguments: st.SearchStrategy[list[Delta]]) -> st.SearchStrategy[list[Delta]]:
    call = st.builds(Call, st.just("look"), st.just(kind), st.sampled_from([None, "maps"]))
    return st.tuples(call, arguments).map(lambda pair: [pair[0], *pair[1]])


def _mcp(arguments: list[Delta], failed: bool) -> list[Delta]:
    result = McpResult(error=TOOL_ERROR) if failed else McpResult(output="42")
    return [McpCall("files", "ask", "mcpr_9" if failed else None), *arguments, result]


def _code(arguments: list[Delta], runs: bool, failed: bool) -> list[Delta]:
    outputs = None if failed else [{"type": "logs", "logs": "2"}]
    return [CodeCall("cntr_1"), *arguments, *([CodeStarted()] if runs else []), CodeResult(outputs, failed)]


def _web(times: int, failed: bool) -> list[Delta]:
    return [WebSearch(), *[SearchStarted()] * times, WebResult(SEARCHED, failed)]


def _file(times: int, failed: bool) -> list[Delta]:
    return [
        FileSearch(["words"]),
        *[SearchStarted()] * times,
        FileResult(["words"], None if failed else [FOUND], failed),
    ]


clauses: st.SearchStrategy[list[Delta]] = st.one_of(
    st.lists(texts, max_size=4),
    short_texts.map(lambda text: [TextDelta(text), Annotation(CITATION), TextDelta(text)]),
    st.lists(st.builds(ReasoningDelta, words), max_size=3),
    st.just([EndItem()]),
    _calls("function", json_arguments),
    _calls("custom", free_arguments),
    st.sampled_from([[McpList("files"), McpTools([TOOL])], [McpList("files"), McpTools(error="no route")]]),
    st.builds(_mcp, json_arguments, st.booleans()),
    st.just([McpApprovalRequest("files", "ask", "{}")]),
    st.sampled_from([[SHELL], [PATCH], [COMPUTER]]),
    st.builds(_code, free_arguments, st.booleans(), st.booleans()),
    st.builds(_web, st.integers(0, 2), st.booleans()),
    st.builds(_file, st.integers(0, 2), st.booleans()),
    st.just([Compaction("blob")]),
)
whole_speeches = st.lists(clauses, max_size=7).map(
    lambda speech_clauses: [piece for clause in speech_clauses for piece in clause]
)


@st.composite
def speeches(draw: st.DrawFn) -> tuple[list[Delta], str]:
    """Draw a legal speech and an ending. Only `complete` must wait for the tools."""
    pieces = draw(whole_speeches)
    ending = draw(st.sampled_from(sorted(ENDINGS)))
    if ending == "complete":
        return pieces, ending
    return pieces[: draw(st.integers(0, len(pieces)))], ending


calls_with_results: st.SearchStrategy[tuple[list[Delta], list[Delta]]] = st.one_of(
    st.sampled_from([([McpList("files")], [McpTools([TOOL])]), ([McpList("files")], [McpTools(error="no route")])]),
    st.builds(lambda arguments, failed: _split(_mcp(arguments, failed), 1), json_arguments, st.booleans()),
    st.builds(
        lambda code, runs, failed: _split(_code(code, runs, failed), 1 + runs), free_arguments, st.booleans(), st.booleans()
    ),
    st.builds(lambda times, failed: _split(_web(times, failed), 1 + times), st.integers(0, 2), st.booleans()),
    st.builds(lambda times: ([FileSearch()], _file(times, False)[1:]), st.integers(0, 2)),
)


def _split(pieces: list[Delta], results: int) -> tuple[list[Delta], list[Delta]]:
    return pieces[:-results], pieces[-results:]


def _in_the_log(pieces: list[Delta]) -> list[Delta]:
    # Log-probabilities that wait for their text, and the queries of an open file search, are in no event.
    nonempty = [piece for piece in pieces if not isinstance(piece, TextDelta) or piece.text]
    return [FileSearch() if isinstance(piece, FileSearch) else piece for piece in nonempty]


plain_clauses: Any = clauses.map(lambda clause: (_in_the_log(clause), []))


@st.composite
def parallel_speeches(draw: st.DrawFn) -> tuple[list[Delta], list[Delta]]:
    """Draw a speech twice: with each call's result right behind the call, and at any later place."""
    drawn_clauses = draw(st.lists(calls_with_results | plain_clauses, min_size=1, max_size=7))
    pending: dict[int, list[Delta]] = {}
    sequential: list[Delta] = []
    interleaved: list[Delta] = []
    scratch = writer()
    scratch.open()

    def advance() -> None:
        """Write the next result of an open call."""
        index = draw(st.sampled_from(sorted(pending)))
        interleaved.append(ForItem(index, pending[index].pop(0)))
        if not pending[index]:
            del pending[index]

    for opening, results in drawn_clauses:
        for piece in opening:
            while pending and draw(st.integers(0, 3)) == 0:
                advance()
            interleaved.append(piece)
            added = [e for e in scratch.write(piece) if e["type"] == "response.output_item.added"]
            if results and added:
                index = added[-1]["output_index"]
        sequential += [*opening, *results]
        for piece in results:
            scratch.write(piece)
        if results:
            pending[index] = list(results)
    while pending:
        advance()
    return sequential, interleaved


def merged(pieces: Iterable[Delta]) -> list[Delta]:
    """The same speech with as few pieces as can be."""
    merged_deltas: list[Delta] = []
    for piece in pieces:
        last = merged_deltas[-1] if merged_deltas else None
        if isinstance(piece, TextDelta) and isinstance(last, TextDelta) and last.phase == piece.phase:
            merged_deltas[-1] = TextDelta(last.text + piece.text, [*last.logprobs, *piece.logprobs], piece.phase)
        elif isinstance(piece, ReasoningDelta | Arguments) and type(last) is type(piece):
            merged_deltas[-1] = replace(piece, text=last.text + piece.text)
        else:
            merged_deltas.append(piece)
    return merged_deltas


def crumbled(pieces: Iterable[Delta]) -> list[Delta]:
    """Split a speech into pieces of a character each; a text's log-probabilities come first."""
    split_deltas: list[Delta] = []
    for piece in pieces:
        if isinstance(piece, TextDelta):
            split_deltas += [TextDelta("", [entry], piece.phase) for entry in piece.logprobs]
            split_deltas += [TextDelta(char, (), piece.phase) for char in piece.text]
        elif isinstance(piece, ReasoningDelta | Arguments):
            split_deltas += [replace(piece, text=char) for char in piece.text]
        else:
            split_deltas.append(piece)
    return split_deltas
