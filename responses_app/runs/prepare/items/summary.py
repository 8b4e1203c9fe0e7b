"""Prompt for a summary of a conversation, and the parser of the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from responses_app.dialects.base import OutputParser
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.protocol.deltas import Compaction, Delta, TextDelta
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.prepare.encrypted_content import seal_summary

SUMMARY_INSTRUCTION = (
    "Summarize our conversation so far, for yourself: you will be given your summary in place of what you have said and of what your "
    "tools have returned. Keep every fact, name, number, decision and open task. Answer with the summary alone."
)
QUESTION = {
    "type": "message",
    "id": "msg_summary",
    "role": "user",
    "status": "completed",
    "content": [{"type": "input_text", "text": SUMMARY_INSTRUCTION}],
}
NO_SUMMARY = (
    "The model has written no summary, so nothing is compacted. "
    "Continue with the items as they are, or compact them with another model."
)
# Tokens of the longest summary: a summary as long as the conversation would be useless.
MAX_SUMMARY_TOKENS = 4096


def summary_request(create_request: CreateRequest) -> CreateRequest:
    """Return the request for a summary: plain text, without tools."""
    plain = {"type": "text"}
    return replace(
        create_request, tools=(), tool_choice="auto", format=plain, max_output_tokens=MAX_SUMMARY_TOKENS, logprobs=None, stop=()
    )


def summary_text(pieces: Iterable[Delta]) -> str:
    """Return the text in the deltas of a summary."""
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)).strip()


class CompactionParser(ParserFilter):
    """Parser of a summary: a compaction delta at the end, or no delta if the model wrote no text."""

    def __init__(self, parser: OutputParser, project: str) -> None:
        super().__init__(parser)
        self._project = project
        self._answer: list[Delta] = []

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        self._answer += deltas
        return []

    def _flush(self) -> list[Delta]:
        summary = summary_text(self._answer)
        return [Compaction(seal_summary(self._project, summary))] if summary else []
