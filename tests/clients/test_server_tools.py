"""Clients of PyPI and npm, unmodified, with the tools that the server runs: code interpreter, file search and web search."""

from __future__ import annotations

from tests.support.clients.drive import Drive
from tests.support.clients.tapes import PERSON
from tests.support.web_search.pages_folder import MOON, OTHER, SUN

REPORT = "Here is [the report](sandbox:/mnt/data/report.csv)."
REPORT_CITED = "container_file_citation sandbox:/mnt/data/report.csv"
WATER = "Arrakis was inspired by the scarcity of water."
WATER_CITED = "example.txt at 45 of 46"
ARRAKIS = "Arrakis, the desert planet, was inspired by the scarcity of water."
TIDES = f"The moon causes tides ([tides.example]({MOON}))."
TIDES_CITED = f"url_citation ([tides.example]({MOON}))"
CALLS = ["code_interpreter_call", "file_search_call", "web_search_call"]
BROWSED = ["search", "open_page", "find_in_page"]


def test_openai_agents_for_python(tool_python: Drive) -> None:
    assert tool_python("server_tools_agents.py", "agents-python") == {
        "code": ["It is 42.", ["print(6 * 7)"]],
        "files": [[REPORT_CITED], "a,b\n1,2\n"],
        "file_search": [WATER, ["completed", ["Arrakis water"], [ARRAKIS]], [WATER_CITED]],
        "web_search": [BROWSED, [TIDES_CITED]],
        "filtered_web_search": [[MOON, SUN], [f"url_citation [Tides]({MOON})"]],
        "turns": [CALLS, "Again."],
        "failures": [["completed", "failed", "failed", "failed"], "Again."],
    }


def test_openai_for_python(tool_python: Drive) -> None:
    assert tool_python("server_tools_openai.py", "openai-python") == {
        "files": ["processed", 7, True, True, "# Notes", True, ["NotFoundError", 404]],
        "vector_stores": {
            "files": ["completed", "completed", "completed", 2, "completed", 2, 5],
            "content": [ARRAKIS],
            "search": [["two.txt", "Worms make spice.", True]],
            "filtered": [["example.txt", {"year": 1966}]],
            "changed": [{"year": 1966}, "novels", {"kind": "test"}, ["novels"], 4, 4, True],
        },
        "containers": [
            "1g",
            ["/mnt/data/data.csv", "/mnt/data/linked.txt", "/mnt/data/own.txt"],
            "there",
            [4, "user", "/mnt/data/own.txt"],
            ["work"],
            "running",
            ["NotFoundError", 404],
        ],
        "create": [
            [[REPORT_CITED], [None]],
            [[WATER_CITED], [None]],
            [[TIDES_CITED], [[action, None] for action in BROWSED]],
        ],
        "stream": [
            [[REPORT_CITED], [["logs"]], True],
            [[WATER_CITED], [["example.txt"]], True],
            [[TIDES_CITED], [["search", [MOON, OTHER, SUN]], ["open_page", None], ["find_in_page", None]], True],
        ],
        "figure": [["logs", "image"], "data:image/png;base64,"],
        "own_container": ["It is 42.", True],
        "parse": [PERSON, ["code_interpreter_call", "code_interpreter_call", "message"]],
        "turns": [[CALLS[0], "reasoning", *CALLS[1:], "message"], "Again.", "Once more."],
        "cancel": ["cancelled", ["incomplete"], ["42"], True],
    }


def test_langchain(tool_python: Drive) -> None:
    kinds = [CALLS[0], "reasoning", *CALLS[1:], "text"]
    server_tool = ["server_tool_call", "server_tool_result"]
    answers = [
        [[CALLS[0], "text"], ["container_file_citation"]],
        [["reasoning", CALLS[1], "text"], ["file_citation"]],
        [[*[CALLS[2]] * 3, "text"], ["url_citation"]],
    ]
    assert tool_python("server_tools_langchain.py", "langchain") == {
        "invoke": answers,
        "stream": answers,
        "turns": [kinds, "Again."],
        "newest_format": [[*server_tool, "reasoning", *server_tool, *server_tool, "text"], "Again."],
        "unstored": [kinds, "Again."],
    }


def test_pydantic_ai(tool_python: Drive) -> None:
    answers = [
        [REPORT, [["code_execution", "completed"]]],
        [WATER, [["file_search", "completed"]]],
        [TIDES, [["web_search", "completed"]] * 3],
    ]
    assert tool_python("server_tools_pydantic.py", "pydantic-ai") == {
        "run": answers,
        "stream": answers,
        "turns": ["All.", "Again."],
        "unstored": ["All.", "Again."],
    }


def test_ai_sdk(tool_node: Drive) -> None:
    web = [TIDES, ["web_search"] * 3, [MOON, OTHER, SUN]]
    answers = {
        "figure": ["logs", "image"],
        "code": [REPORT, ["code_interpreter"], ["report.csv"]],
        "files": [WATER, ["file_search"], ["example.txt"], ["example.txt"]],
        "web": web,
        "turns, store true": ["All.", "Again."],
        "turns, store false": ["All.", "Again."],
        "failures": ["Oh.", "Again."],
    }
    ways = ("generate", "stream")
    assert tool_node("server_tools_ai.mjs", "ai") == {f"{way} {name}": value for way in ways for name, value in answers.items()}


def test_openai_agents_for_node(tool_node: Drive) -> None:
    assert tool_node("server_tools_agents.mjs", "agents-node") == {
        "code": [REPORT, [CALLS[0]]],
        "files": [WATER, [CALLS[1]]],
        "web": [TIDES, [CALLS[2]] * 3],
        "turns": ["All.", "Again."],
    }
