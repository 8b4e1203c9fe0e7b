"""Output formats chosen for a chat template, and outputs read with these."""

from __future__ import annotations

from typing import Any

from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.families.detection import Evidence, detect
from responses_app.dialects.families.format_choice import FormatChoice, choose_format
from responses_app.dialects.families.unread_output import SpecialTokens
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.scanner import FormatScanner
from responses_app.dialects.text.delta_buffer import DeltaBuffer
from tests.support.dialects.families.cases import TOOLS, Item, OutputCase
from tests.support.dialects.families.open_families import items_of

# Expression with which CHATML writes a call.
ONE_CALL = "'\n<tool_call>\n' + call.function | tojson + '\n</tool_call>'"
_STOPS = frozenset({"<|im_end|>"})


def choose_for(template: str, *special: str, response_template: object = None, **evidence: Any) -> FormatChoice:
    """Choose the output format of a model with special tokens, a response template, and other evidence."""
    detection = detect(Evidence(templates=[template], **evidence))
    tokens = SpecialTokens(frozenset(special) | _STOPS, _STOPS)
    return choose_format(ChatTemplate(template), detection, tokens, lambda output: output, response_template)


def read_by_letters(output: OutputFormat, case: OutputCase) -> list[Item]:
    """Read an output character by character."""
    deltas, schemas = DeltaBuffer(), {tool["name"]: tool.get("parameters", {}) for tool in TOOLS}
    is_open = bool(output.reasoning and case.expected[0][0] == "reasoning" and output.reasoning.begins[0] not in case.output)
    scanner = FormatScanner(deltas, output, schemas.__contains__, schemas, thinking=is_open)
    for char in output.opening + case.output:
        scanner.feed(char)
    scanner.end()
    return items_of(deltas.take_rest())
