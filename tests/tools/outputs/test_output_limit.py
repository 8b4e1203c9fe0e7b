"""Outputs of server tools in prompts: parts that are no text, and the limit of the length."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput
from responses_app.tools.outputs.output_limit import limit_tool_output

PICTURE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
FILE = {"type": "resource", "resource": {"uri": "file:///notes.txt", "text": "Buy milk."}}
LINK = {"type": "resource_link", "uri": "https://example.com/report", "name": "report"}


def shown(output: object, max_bytes: int = 1000) -> str:
    text = output if isinstance(output, str) else orjson.dumps(output).decode()
    item = limit_tool_output({"type": "mcp_call", "output": text}, max_bytes)
    return str(item[MODEL_OUTPUT].text)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        pytest.param(
            [{"type": "text", "text": "A map:"}, PICTURE],
            "A map:\n[The result has a part of type image (image/png), which is shown to the user alone.]",
            id="picture",
        ),
        pytest.param([FILE, {"type": "text", "text": "End."}], "Buy milk.\nEnd.", id="text of a resource"),
        pytest.param(
            [LINK],
            "[Link to a resource: report, https://example.com/report]",
            id="link",
        ),
        pytest.param(
            [{**LINK, "title": "Report", "description": "Sales of May", "mimeType": "text/csv"}],
            "[Link to a resource: Report, https://example.com/report, text/csv, Sales of May]",
            id="link with a description",
        ),
    ],
)
def test_parts_become_text(parts: list[Any], text: str) -> None:
    assert shown(parts) == text


@pytest.mark.parametrize(
    "output", ["[]", "[1]", '[{"type": "order", "id": 7}]', '[{"type": "text"', '{"type": "image"}', "text"]
)
def test_other_outputs_stay(output: str) -> None:
    item = {"type": "mcp_call", "output": output}
    assert limit_tool_output(item, 1000) is item


def test_the_picture_does_not_count_for_the_limit() -> None:
    assert "cut" not in shown([{**PICTURE, "data": "x" * 5000}])


def test_long_text_is_cut_at_a_whole_character() -> None:
    assert shown("é" * 600, 1001) == "é" * 500 + "\n[The output is too long: 100 more characters were cut.]"


@pytest.mark.parametrize(
    ("output", "text"),
    [
        pytest.param(ModelOutput("Tea."), "Tea.", id="text"),
        pytest.param(
            ModelOutput("x" * 1005), "x" * 1000 + "\n[The output is too long: 5 more characters were cut.]", id="long"
        ),
        pytest.param(
            ModelOutput("A plot:", ["data:image/png;base64,AAAA"]),
            "A plot:\n[The result has a part of type image (image/png), which is shown to the user alone.]",
            id="picture",
        ),
        pytest.param(ModelOutput(None), None, id="nothing"),
    ],
)
def test_output_for_the_model_is_limited(output: ModelOutput, text: str | None) -> None:
    item = {"type": "code_interpreter_call", MODEL_OUTPUT: output}
    assert limit_tool_output(item, 1000)[MODEL_OUTPUT] == ModelOutput(text)


def test_items_of_the_client_stay() -> None:
    item = {"type": "function_call_output", "output": "x" * 5000}
    assert limit_tool_output(item, 1000) is item
