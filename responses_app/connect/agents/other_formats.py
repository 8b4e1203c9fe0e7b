"""Clients of Messages and of Chat Completions: Claude Code, Continue, Aider and Open WebUI."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from responses_app.connect.connection import Agent, ConfigFile, Connection
from responses_app.connect.edits import jsonc, yaml_list
from responses_app.connect.edits.errors import CannotEdit
from responses_app.demo.build import FOLDERS

# Tokens of the 36 functions that Open WebUI adds to each request, with a large vocabulary.
BUILTIN_TOOLS_TOKENS: Final = 4300


def _claude_code(connection: Connection, home: Path, environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    name = connection.model.name
    variables = {
        "ANTHROPIC_BASE_URL": connection.root,
        "ANTHROPIC_AUTH_TOKEN": connection.key,
        "ANTHROPIC_MODEL": name,
        # Titles and summaries are for the first; sub-agents of plugins name any of them, as in `model: sonnet`.
        **{f"ANTHROPIC_DEFAULT_{family}_MODEL": name for family in ("HAIKU", "SONNET", "OPUS", "FABLE")},
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(connection.model.context_window),
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(connection.model.max_output),
        # Else the model of OPUS has a million tokens of context, as soon as a person chooses "Default".
        "CLAUDE_CODE_DISABLE_1M_CONTEXT": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # In auto mode Anthropic's API checks each call of a tool. Without it, Claude Code asks this model.
        "CLAUDE_CODE_AUTO_MODE_SERVER": "0",
        "CLAUDE_CODE_AUTO_MODE_MODEL": name,
    }

    def edit(text: str) -> str:
        for variable, value in variables.items():
            text = jsonc.set_value(text, ["env", variable], value)
        # Auto mode is the default of Claude Code, and a small model is no judge of its own calls.
        permissions = jsonc.parse(text).get("permissions", {})
        if isinstance(permissions, dict) and "defaultMode" not in permissions:
            text = jsonc.set_value(text, ["permissions", "defaultMode"], "default")
        return text

    folder = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    return [ConfigFile(folder / "settings.json", edit, is_secret=True)]


def _continue(connection: Connection, home: Path, environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    model = connection.model
    entry: dict[str, Any] = {
        "name": f"Verbatim {model.name}",
        "provider": "openai",
        "model": model.name,
        "apiBase": connection.base_url,
        "apiKey": connection.key,
        "roles": ["chat", "edit", "apply"],
        "capabilities": ["tool_use", *(["image_input"] if model.supports_images else [])],
        "defaultCompletionOptions": {"contextLength": model.context_window, "maxTokens": model.max_output},
    }
    config = {"name": "Verbatim", "version": "0.0.1", "schema": "v1", "models": [entry]}
    text_of_config = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)

    def edit(text: str) -> str:
        if not text.strip() or _is_own(text):
            return text_of_config
        try:
            return yaml_list.set_entry_below(text, "models", "name", entry)
        except CannotEdit as error:
            by_hand = json.dumps({**entry, "apiKey": "YOUR_KEY"})
            raise CannotEdit(f"{error}. Add this model to 'models' by hand: {by_hand}") from error

    folder = Path(environ.get("CONTINUE_GLOBAL_DIR") or home / ".continue")
    return [ConfigFile(folder / "config.yaml", edit, is_secret=True)]


def _is_own(text: str) -> bool:
    """Return whether a configuration of Continue has only a model that an earlier run has written. Raises CannotEdit."""
    try:
        config = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeError) as error:
        raise CannotEdit(f"it cannot be parsed: {error}") from error
    return isinstance(config, dict) and config.get("name") == "Verbatim" and len(config.get("models") or ()) == 1


def _aider(connection: Connection, home: Path, _environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    model = connection.model
    facts = {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": model.context_window,
        "max_output_tokens": model.max_output,
        "input_cost_per_token": 0,
        "output_cost_per_token": 0,
        "supports_vision": model.supports_images,
    }
    path = home / ".aider.model.metadata.json"
    return [ConfigFile(path, lambda text: jsonc.set_value(text, [f"openai/{model.name}"], facts))]


def _open_webui_variables(connection: Connection) -> Mapping[str, str]:
    model = connection.model
    capabilities = {"usage": True, "vision": model.supports_images}
    if model.context_window < 2 * BUILTIN_TOOLS_TOKENS or model.name in FOLDERS:
        # A demo model gives no sensible answer behind so many functions.
        capabilities["builtin_tools"] = False
    return {
        "OPENAI_API_BASE_URL": connection.base_url,
        "OPENAI_API_KEY": connection.key,
        "DEFAULT_MODEL_METADATA": json.dumps({"capabilities": capabilities}),
    }


CLAUDE_CODE: Final = Agent(
    "claude-code",
    "Claude Code",
    _claude_code,
    "claude",
    note="Claude Code asks before it runs commands. In its auto mode the served model decides that.",
    first_prompt=11_000,
)
CONTINUE: Final = Agent("continue", "Continue", _continue, "cn")
AIDER: Final = Agent(
    "aider",
    "Aider",
    _aider,
    "aider --model openai/MODEL",
    lambda connection: {"OPENAI_API_BASE": connection.base_url, "OPENAI_API_KEY": connection.key},
)
OPEN_WEBUI: Final = Agent(
    "open-webui",
    "Open WebUI",
    lambda *_: (),
    "open-webui serve",
    _open_webui_variables,
    note="Open WebUI reads the variables at its first start only. Later, enter address and key in its settings, in Connections.",
)
