"""Codex: `config.toml`, and a file with the key that Codex reads by a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from responses_app.connect.connection import Agent, ConfigFile, Connection, replace_with
from responses_app.connect.edits import toml

PROVIDER = "model_providers.verbatim"


def _files(connection: Connection, home: Path, environ: Mapping[str, str]) -> Sequence[ConfigFile]:
    folder = Path(environ.get("CODEX_HOME") or home / ".codex")
    key_file = folder / "verbatim.key"
    model = connection.model
    values = {"model": model.name, "model_provider": "verbatim"}
    if model.default_effort:
        values["model_reasoning_effort"] = model.default_effort
    tables: dict[str, Mapping[str, Any]] = {
        PROVIDER: {
            "name": "Verbatim",
            "base_url": connection.base_url,
            "wire_api": "responses",
            "supports_websockets": True,
        },
        # Codex asks a provider for its models only where it gets the key in this way. The models bring the context window,
        # the efforts, pictures and tools.
        f"{PROVIDER}.auth": {"command": "cat", "args": [str(key_file)]},
    }
    return [
        ConfigFile(folder / "config.toml", lambda text: toml.set_values(text, values, PROVIDER, tables)),
        ConfigFile(key_file, replace_with(connection.key + "\n"), is_secret=True),
    ]


CODEX = Agent(
    "codex",
    "Codex",
    _files,
    "codex",
    first_prompt=4200,
    note="Codex reads the context window, the efforts and the tools of the model from this server.",
)
