"""gpt-oss's own tools `python` and `browser`: system message, calls and results in the history."""

from __future__ import annotations

from typing import Any

from openai_harmony import Message, RenderOptions, Role, SystemContent

from responses_app.tools.functions.as_functions import to_functions
from responses_app.tools.registry import FUNCTIONS
from tests.support.dialects.parser_driver import WEATHER, harmony, turn, user

ALL = tuple(FUNCTIONS.values())
CODE_CALL = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "container_id": "cntr_1",
    "code": 'print("x")',
    "outputs": [{"type": "logs", "logs": "x"}],
}
SEARCHES = [
    {"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": action}
    for number, action in enumerate(
        [
            {"type": "search", "query": "tides", "sources": [{"type": "url", "url": "https://moon.example"}]},
            {"type": "open_page", "url": "https://moon.example"},
            {"type": "find_in_page", "url": "https://moon.example", "pattern": "ebb"},
        ]
    )
]
FILES = {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["ebb"], "results": None}


def rendered(*items: dict[str, Any], **how: Any) -> str:
    converted, _ = to_functions(turn(*items, **how))
    text: str = harmony().encoding.decode(harmony().render(converted))
    return text


def test_system_message_has_the_tools_as_the_library_renders_them() -> None:
    text = rendered(tools=ALL)
    content = SystemContent.new().with_browser_tool()
    message = Message.from_role_and_content(Role.SYSTEM, content)
    by_library = harmony().encoding.decode_utf8(
        harmony().encoding.render(message, RenderOptions(conversation_has_function_tools=True))
    )
    browser = by_library[by_library.index("# Tools") : by_library.index("# Valid channels")].strip()
    assert browser in text
    assert "## python\n\nUse this tool to execute Python code" in text
    assert "time out after 120.0 seconds" in text
    assert "type file_search = (_: {" in text
    assert "type web_search" not in text


def test_functions_are_mentioned_only_with_functions() -> None:
    mention = "Calls to these tools must go to the commentary channel: 'functions'."
    assert mention not in rendered(tools=(FUNCTIONS["python"],))
    assert mention in rendered(tools=(FUNCTIONS["python"], WEATHER))


def test_history_has_the_form_of_gpt_oss() -> None:
    text = rendered(user("?"), CODE_CALL, *SEARCHES, tools=ALL).partition("<|start|>user")[2]
    calls = {
        "python": 'print("x")',
        "browser.search": '{"query": "tides"}',
        "browser.open": '{"id": "https://moon.example"}',
        "browser.find": '{"pattern": "ebb"}',
    }
    frames = [
        f"<|start|>assistant to={name}<|channel|>analysis <|constrain|>code<|message|>{call}<|call|>"
        f"<|start|>{name} to=assistant<|channel|>analysis<|message|>"
        for name, call in calls.items()
    ]
    assert [frame for frame in frames if frame not in text] == []


def test_history_of_tools_that_are_not_offered_has_functions() -> None:
    text = rendered(user("?"), CODE_CALL, *SEARCHES, FILES, tools=())
    names = ["python", "web_search", "open_page", "find_in_page", "file_search"]
    assert [name for name in names if f"to=functions.{name} " not in text] == []
    assert '{"code": "print(\\"x\\")"}' in text


def test_client_function_named_python_stays_a_function() -> None:
    client_tool = {"type": "function", "name": "python", "parameters": {"type": "object", "properties": {}}}
    call = {"type": "function_call", "call_id": "c", "name": "python", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    text = rendered(user("?"), call, output, tools=(client_tool,))
    assert "to=functions.python <|constrain|>json<|message|>{}" in text
    assert "## python" not in text
