"""Constraints for real engines, with expected outputs, and invalid requests."""

from __future__ import annotations

import base64
import json
from typing import Any

from responses_app.engine_interface import Constraint

BOOLEAN = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}

THINK_THEN_CALL = {
    "type": "structural_tag",
    "format": {
        "type": "sequence",
        "elements": [
            {"type": "tag", "begin": "<think>", "content": {"type": "regex", "pattern": "[a-c]{2}"}, "end": "</think>"},
            {
                "type": "tags_with_separator",
                "tags": [
                    {
                        "type": "tag",
                        "begin": '<tool_call>\n{"name": "f", "arguments": ',
                        "content": {"type": "json_schema", "json_schema": BOOLEAN},
                        "end": "}\n</tool_call>",
                    }
                ],
                "separator": "\n",
                "at_least_one": True,
                "stop_after_first": True,
            },
        ],
    },
}

# Constraint -> regular expression for the output before the end token.
CONSTRAINTS: dict[str, tuple[Constraint, str]] = {
    "regex": (Constraint("regex", "[ab]{3}"), "[ab]{3}"),
    "json": (Constraint("json", BOOLEAN), r'\s*\{\s*"a"\s*:\s*(true|false)\s*\}\s*'),
    "json as text": (Constraint("json", json.dumps(BOOLEAN)), r'\s*\{\s*"a"\s*:\s*(true|false)\s*\}\s*'),
    "ebnf": (Constraint("grammar", 'root ::= "x" [0-9]{2}'), "x[0-9]{2}"),
    "lark": (Constraint("grammar", 'start: "x" /[0-9][0-9]/\n'), "x[0-9]{2}"),
    "structural tag": (
        Constraint("structural_tag", THINK_THEN_CALL),
        r'<think>[a-c]{2}</think><tool_call>\n\{"name": "f", "arguments": \s*\{\s*"a"\s*:\s*(true|false)\s*\}\}\n</tool_call>',
    ),
}

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

BAD: dict[str, dict[str, Any]] = {
    "regex": {"constraint": Constraint("regex", "[a")},
    "schema": {"constraint": Constraint("json", {"type": "nonsense"})},
    "grammar": {"constraint": Constraint("grammar", "root ::= missing")},
    "structural tag": {"constraint": Constraint("structural_tag", {"type": "structural_tag", "format": {"type": "wat"}})},
    "too long a prompt": {"prompt": [1] * 512},
    "an empty prompt": {"prompt": []},
    "a token that is none": {"prompt": [99_999]},
    "no tokens wanted": {"max_tokens": 0},
    "a temperature below zero": {"sampling": {"temperature": -1.0}},
    "too many logprobs": {"sampling": {"logprobs": 99}},
}
