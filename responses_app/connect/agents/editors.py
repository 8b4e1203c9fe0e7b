"""Editors: Zed and VS Code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from responses_app.connect.connection import KEY_VARIABLE, Agent, ConfigFile, Connection, config_home
from responses_app.connect.edits import jsonc


def _zed(connection: Connection, home: Path, environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    model = connection.model
    entry: dict[str, Any] = {
        "name": model.name,
        "display_name": model.name,
        "max_tokens": model.context_window,
        "max_output_tokens": model.max_output,
        "capabilities": {
            "tools": True,
            "images": model.supports_images,
            "parallel_tool_calls": True,
            "prompt_cache_key": True,
            "chat_completions": False,
        },
    }
    if model.default_effort:
        entry["reasoning_effort"] = model.default_effort
    provider = {"api_url": connection.base_url, "available_models": [entry]}

    def edit(text: str) -> str:
        text = jsonc.set_value(text, ["language_models", "openai_compatible", "Verbatim"], provider)
        return jsonc.set_value(text, ["agent", "default_model"], {"provider": "Verbatim", "model": model.name})

    return [ConfigFile(config_home(home, environ) / "zed" / "settings.json", edit)]


def _vscode(connection: Connection, home: Path, environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    model = connection.model
    entry: dict[str, Any] = {
        "id": model.name,
        "name": model.name,
        "url": f"{connection.base_url}/responses",
        "toolCalling": True,
        "vision": model.supports_images,
        "maxInputTokens": model.context_window - model.max_output,
        "maxOutputTokens": model.max_output,
    }
    if model.efforts:
        entry |= {
            "thinking": True,
            "supportsReasoningEffort": list(model.efforts),
            "reasoningEffortFormat": "responses",
        }
    group = {
        "name": "Verbatim",
        "vendor": "customendpoint",
        "apiKey": connection.key,
        "apiType": "responses",
        "models": [entry],
    }

    def edit(text: str) -> str:
        return jsonc.set_value(text, [{"name": "Verbatim", "vendor": "customendpoint"}], group)

    path = config_home(home, environ) / "Code" / "User" / "chatLanguageModels.json"
    return [ConfigFile(path, edit, is_secret=True)]


def _key(connection: Connection) -> Mapping[str, str]:
    return {KEY_VARIABLE: connection.key}


ZED = Agent("zed", "Zed", _zed, "zed", _key, note="Zed reads the key from the environment, or from its settings of the agent.")
VSCODE = Agent("vscode", "VS Code", _vscode, "code", note="Choose the model in the chat: Manage Models, Verbatim.")
