"""Clients of the terminal: Codex, opencode, Cline, goose and llm."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from responses_app.connect.connection import KEY_VARIABLE, Agent, ConfigFile, Connection, config_home, replace_with
from responses_app.connect.edits import jsonc, toml, yaml_list

# Time of a change in Cline's file.
UPDATED_AT = re.compile(r'"updatedAt": "[^"]*"')
CODEX_PROVIDER = "model_providers.verbatim"
# Built-in provider of Cline, for Chat Completions. Its command line runs no provider with a name of its own.
CLINE_PROVIDER = "openai-compatible"


def _codex(connection: Connection, home: Path, environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    folder = Path(environ.get("CODEX_HOME") or home / ".codex")
    key_file = folder / "verbatim.key"
    model = connection.model
    values = {"model": model.name, "model_provider": "verbatim"}
    if model.default_effort:
        values["model_reasoning_effort"] = model.default_effort
    tables: dict[str, Mapping[str, Any]] = {
        CODEX_PROVIDER: {
            "name": "Verbatim",
            "base_url": connection.base_url,
            "wire_api": "responses",
            "supports_websockets": True,
        },
        # Codex asks a provider for its models only where it gets the key in this way. The models bring the context window,
        # the efforts, pictures and tools.
        f"{CODEX_PROVIDER}.auth": _printing(key_file),
    }
    return [
        ConfigFile(folder / "config.toml", lambda text: toml.set_values(text, values, CODEX_PROVIDER, tables)),
        ConfigFile(key_file, replace_with(connection.key + "\n"), is_secret=True),
    ]


def _printing(path: Path) -> dict[str, Any]:
    """Return the command that prints a file. Codex starts it without a shell, which a path that begins with `~` needs."""
    if path.parts[0] == "~":
        return {"command": "sh", "args": ["-c", f"cat {path}"]}
    return {"command": "cat", "args": [str(path)]}


def _opencode(connection: Connection, home: Path, environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    folder = config_home(home, environ) / "opencode"
    key_file, model = folder / "verbatim.key", connection.model
    options: dict[str, Any] = {"store": False}
    if model.efforts:
        options |= {
            "reasoningEffort": model.default_effort,
            "reasoningSummary": "auto",
            "include": ["reasoning.encrypted_content"],
        }
    entry: dict[str, Any] = {
        "name": model.name,
        "limit": {"context": model.context_window, "output": model.max_output},
        "tool_call": True,
        "reasoning": bool(model.efforts),
        "attachment": model.supports_images,
        "modalities": {"input": model.modalities, "output": ["text"]},
        "options": options,
        "variants": {effort: {"reasoningEffort": effort} for effort in model.efforts},
    }
    provider = {
        "npm": "@ai-sdk/openai",
        "name": "Verbatim",
        "options": {"baseURL": connection.base_url, "apiKey": f"{{file:{key_file}}}"},
        "models": {model.name: entry},
    }

    def edit(text: str) -> str:
        if not text.strip():
            text = jsonc.set_value(text, ["$schema"], "https://opencode.ai/config.json")
        text = jsonc.set_value(text, ["provider", "verbatim"], provider)
        return jsonc.set_value(text, ["model"], f"verbatim/{model.name}")

    names = ("opencode.jsonc", "opencode.json")
    path = next((folder / name for name in names if (folder / name).exists()), folder / "opencode.json")
    return [ConfigFile(path, edit), ConfigFile(key_file, replace_with(connection.key), is_secret=True)]


def _cline(connection: Connection, home: Path, environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    folder = Path(environ.get("CLINE_DATA_DIR") or home / ".cline" / "data") / "settings"
    model = connection.model
    settings: dict[str, Any] = {
        "provider": CLINE_PROVIDER,
        "apiKey": connection.key,
        "model": model.name,
        "baseUrl": connection.base_url,
        "contextWindow": model.context_window,
        "maxTokens": model.max_output,
    }
    if model.efforts:
        settings["reasoning"] = {"enabled": True, "effort": model.default_effort}
    # Cline drops the whole file if a time has an offset in the place of the Z.
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    stored = {"settings": settings, "updatedAt": now, "tokenSource": "manual"}

    def edit_providers(text: str) -> str:
        edited = jsonc.set_value(text, ["version"], 1)
        edited = jsonc.set_value(edited, ["lastUsedProvider"], CLINE_PROVIDER)
        edited = jsonc.set_value(edited, ["providers", CLINE_PROVIDER], stored)
        if "verbatim" in jsonc.parse(edited)["providers"]:
            # The entry of an earlier version, whose time had an offset.
            edited = jsonc.set_value(edited, ["providers", "verbatim", "updatedAt"], now)
        # A new time alone is no change.
        return text if UPDATED_AT.sub("", edited) == UPDATED_AT.sub("", text) else edited

    def edit_models(text: str) -> str:
        path = ["providers", CLINE_PROVIDER, "models", model.name]
        return jsonc.set_value(jsonc.set_value(text, ["version"], 1), path, _cline_model(connection))

    return [
        ConfigFile(folder / "providers.json", edit_providers, is_secret=True),
        ConfigFile(folder / "models.json", edit_models),
    ]


def _cline_model(connection: Connection) -> dict[str, Any]:
    """Return the entry of the model in Cline's list of models."""
    model = connection.model
    capabilities = ["tools", "streaming", *(["images"] if model.supports_images else [])]
    capabilities += ["reasoning", "reasoning-effort"] if model.efforts else []
    return {
        "id": model.name,
        "name": model.name,
        "contextWindow": model.context_window,
        "maxTokens": model.max_output,
        "capabilities": capabilities,
    }


def _goose(connection: Connection, home: Path, environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    model = connection.model
    provider = {
        "name": "custom_verbatim",
        "engine": "openai",
        "display_name": "Verbatim",
        "description": "Models of this server",
        "api_key_env": KEY_VARIABLE,
        "base_url": connection.root,
        "base_path": "v1/responses",
        "models": [{"name": model.name, "context_limit": model.context_window, "reasoning": bool(model.efforts)}],
        "supports_streaming": True,
        "requires_auth": True,
    }
    path = config_home(home, environ) / "goose" / "custom_providers" / "custom_verbatim.json"
    return [ConfigFile(path, replace_with(json.dumps(provider, indent=2) + "\n"))]


def _llm(connection: Connection, home: Path, environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    folder = Path(environ.get("LLM_USER_PATH") or config_home(home, environ) / "io.datasette.llm")
    model = connection.model
    entry = {
        "model_id": f"verbatim/{model.name}",
        "model_name": model.name,
        "api_base": connection.base_url,
        "api_key_name": "verbatim",
        "responses": True,
        "reasoning": bool(model.efforts),
        "vision": model.supports_images,
        "supports_schema": True,
        "supports_tools": True,
    }
    return [
        ConfigFile(folder / "extra-openai-models.yaml", lambda text: yaml_list.set_entry(text, "model_id", entry)),
        ConfigFile(folder / "keys.json", lambda text: jsonc.set_value(text, ["verbatim"], connection.key), is_secret=True),
    ]


def _goose_variables(connection: Connection) -> Mapping[str, str]:
    return {"GOOSE_PROVIDER": "custom_verbatim", "GOOSE_MODEL": connection.model.name, KEY_VARIABLE: connection.key}


CODEX = Agent(
    "codex",
    "Codex",
    _codex,
    "codex",
    first_prompt=4200,
    note="Codex reads the context window, the efforts and the tools of the model from this server.",
)
OPENCODE = Agent("opencode", "opencode", _opencode, "opencode", first_prompt=6200)
CLINE = Agent(
    "cline",
    "Cline",
    _cline,
    "cline",
    note="These are the files of Cline's command line, with its provider 'openai-compatible'.",
)
GOOSE = Agent("goose", "goose", _goose, "goose session", _goose_variables)
LLM = Agent(
    "llm",
    "llm",
    _llm,
    "llm -m verbatim/MODEL 'Hello!'",
    note="llm shows reasoning twice, as text and as summary: -R hides it. It has no setting for a default effort.",
)
