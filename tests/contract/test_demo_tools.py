"""Demo tools with the real demo model and the openai client, as docs/demo.md describes."""

from __future__ import annotations

import pytest
from openai import OpenAI
from openai.types.responses.response_output_item import McpApprovalRequest, McpCall
from openai.types.responses.tool_param import Mcp

pytestmark = pytest.mark.engine
TOOL: Mcp = {"type": "mcp", "server_label": "demo"}


@pytest.mark.parametrize(
    ("question", "tool", "output"),
    [
        ("What is the weather in Paris?", "get_weather", '{"weather": "sunny", "temperature": 15}'),
        ("What's the weather in Oslo?", "get_weather", '{"weather": "sunny", "temperature": 14}'),
        ("Weather in London", "get_weather", '{"weather": "sunny", "temperature": 16}'),
        ("Add 17 and 25.", "add", "42"),
    ],
)
def test_demo_model_calls_a_demo_tool(client: OpenAI, question: str, tool: str, output: str) -> None:
    response = client.responses.create(model="demo-chat", input=question, tools=[{**TOOL, "require_approval": "never"}])
    calls = [item for item in response.output if isinstance(item, McpCall)]
    assert [(call.name, call.output) for call in calls] == [(tool, output)]
    assert response.output_text


def test_approved_call_runs_in_the_next_response(client: OpenAI) -> None:
    first = client.responses.create(model="demo-chat", input="What is the weather in Paris?", tools=[TOOL])
    request = first.output[-1]
    assert isinstance(request, McpApprovalRequest)
    second = client.responses.create(
        model="demo-chat",
        previous_response_id=first.id,
        input=[{"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}],
        tools=[TOOL],
    )
    assert isinstance(second.output[0], McpCall)
    assert second.output[0].approval_request_id == request.id
    assert second.output_text == "Paris: weather sunny, temperature 15."
