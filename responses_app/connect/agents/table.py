"""Table of the clients that can be connected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from responses_app.connect.agents.editors import VSCODE, ZED
from responses_app.connect.agents.other_formats import AIDER, CLAUDE_CODE, CONTINUE, OPEN_WEBUI
from responses_app.connect.agents.terminal import CLINE, CODEX, GOOSE, LLM, OPENCODE
from responses_app.connect.connection import Agent, Connection


def _openai_variables(connection: Connection) -> Mapping[str, str]:
    return {"OPENAI_BASE_URL": connection.base_url, "OPENAI_API_KEY": connection.key}


OPENAI_PYTHON: Final = Agent(
    "openai-python",
    "openai for Python",
    lambda *_: (),
    'python -c \'from openai import OpenAI; print(OpenAI().responses.create(model="MODEL", input="Hello!").output_text)\'',
    _openai_variables,
    note="The library reads both variables. It has no configuration file.",
)
AGENTS: Final[Mapping[str, Agent]] = {
    agent.name: agent
    for agent in (
        CODEX,
        CLAUDE_CODE,
        OPENCODE,
        ZED,
        CLINE,
        VSCODE,
        CONTINUE,
        AIDER,
        GOOSE,
        LLM,
        OPEN_WEBUI,
        OPENAI_PYTHON,
    )
}
