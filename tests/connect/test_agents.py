"""Configuration of each client: the documented form, with the address, the key and the facts about the model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from responses_app.connect.agents.table import AGENTS
from responses_app.connect.changes import plan, write
from responses_app.connect.check import CHAT, MESSAGES, request_body
from responses_app.connect.codex_models import codex_model
from responses_app.connect.connection import Connection
from responses_app.connect.edits.errors import CannotEdit
from responses_app.connect.facts import ModelFacts

SEES = ModelFacts("org/model-1.5", 32768, ("low", "medium", "high"), supports_images=True)
PLAIN = ModelFacts("plain", 8192)
KEY = "sk-secret-key-of-a-test"
CODEX_REQUIRED = {
    "slug",
    "display_name",
    "supported_reasoning_levels",
    "shell_type",
    "visibility",
    "supported_in_api",
    "priority",
    "support_verbosity",
    "truncation_policy",
    "experimental_supported_tools",
    "base_instructions",
}


def written(agent: str, home: Path, model: ModelFacts = SEES, **environ: str) -> dict[str, str]:
    """Write the files of an agent and return their contents by name."""
    connection = Connection("http://127.0.0.1:8000/v1", KEY, model)
    changes = plan(AGENTS[agent], connection, home, environ)
    for change in changes:
        write(change)
        assert KEY not in change.diff(KEY)
        assert change.path.is_relative_to(home)
        assert not change.is_secret or change.path.stat().st_mode & 0o777 == 0o600
    assert plan(AGENTS[agent], connection, home, environ) == []
    return {change.path.name: change.after for change in changes}


def test_codex_has_a_provider_and_a_key_file(tmp_path: Path) -> None:
    files = written("codex", tmp_path)
    config = tomllib.loads(files["config.toml"])
    provider = config["model_providers"]["verbatim"]
    assert (config["model"], config["model_provider"]) == (SEES.name, "verbatim")
    assert (provider["base_url"], provider["wire_api"]) == ("http://127.0.0.1:8000/v1", "responses")
    assert provider["auth"] == {"command": "cat", "args": [str(tmp_path / ".codex" / "verbatim.key")]}
    assert files["verbatim.key"].strip() == KEY
    assert "config.toml" in written("codex", tmp_path / "other", CODEX_HOME=str(tmp_path / "other" / "codex"))


def test_key_command_of_the_page_prints_the_key_without_a_shell(tmp_path: Path) -> None:
    """The page names files below `~`, and Codex starts the command itself."""
    written("codex", tmp_path)
    files = AGENTS["codex"].files(Connection("http://127.0.0.1:8000/v1", KEY, SEES), Path("~"), {})
    auth = tomllib.loads(files[0].edit(""))["model_providers"]["verbatim"]["auth"]
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    printed = subprocess.run([auth["command"], *auth["args"]], env=environ, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == KEY


@pytest.mark.parametrize("model", [SEES, PLAIN], ids=lambda model: str(model.name))
def test_codex_model_has_every_required_key(model: ModelFacts) -> None:
    made = codex_model(model)
    assert made.keys() >= CODEX_REQUIRED
    assert (made["context_window"], made["input_modalities"]) == (model.context_window, model.modalities)
    assert [level["effort"] for level in made["supported_reasoning_levels"]] == list(model.efforts)


def test_opencode_has_limits_variants_and_pictures(tmp_path: Path) -> None:
    config = json.loads(written("opencode", tmp_path)["opencode.json"])
    provider = config["provider"]["verbatim"]
    model = provider["models"][SEES.name]
    assert (config["model"], provider["npm"]) == (f"verbatim/{SEES.name}", "@ai-sdk/openai")
    assert provider["options"]["apiKey"] == f"{{file:{tmp_path}/.config/opencode/verbatim.key}}"
    assert (model["limit"], model["attachment"]) == ({"context": 32768, "output": 8192}, True)
    assert (list(model["variants"]), model["options"]["reasoningSummary"]) == (["low", "medium", "high"], "auto")
    plain = json.loads(written("opencode", tmp_path / "plain", PLAIN)["opencode.json"])
    assert plain["provider"]["verbatim"]["models"]["plain"]["options"] == {"store": False}


def test_zed_keeps_comments_and_uses_responses(tmp_path: Path) -> None:
    settings = tmp_path / ".config" / "zed" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('// Zed settings\n{\n  "theme": "One Dark", // dark\n}\n')
    text = written("zed", tmp_path)["settings.json"]
    assert text.startswith('// Zed settings\n{\n  "theme": "One Dark", // dark\n')
    config: dict[str, Any] = json.loads("\n".join(line.partition(" //")[0] for line in text.splitlines()[1:]))
    (model,) = config["language_models"]["openai_compatible"]["Verbatim"]["available_models"]
    assert (model["max_tokens"], model["reasoning_effort"]) == (32768, "medium")
    assert (model["capabilities"]["chat_completions"], model["capabilities"]["images"]) == (False, True)
    (backup,) = settings.parent.glob("*.bak")
    assert backup.read_text().startswith('// Zed settings\n{\n  "theme": "One Dark", // dark\n}')
    assert KEY not in text


def test_cline_has_a_provider_and_a_model(tmp_path: Path) -> None:
    path = tmp_path / ".cline" / "data" / "settings" / "providers.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"providers": {"verbatim": {"settings": {}, "updatedAt": "2026-11-28T10:00:00.123456+00:00"}}}')
    files = written("cline", tmp_path)
    providers, models = json.loads(files["providers.json"]), json.loads(files["models.json"])
    settings = providers["providers"]["openai-compatible"]["settings"]
    assert (providers["version"], providers["lastUsedProvider"], models["version"]) == (1, "openai-compatible", 1)
    assert (settings["baseUrl"], settings["apiKey"], settings["model"]) == ("http://127.0.0.1:8000/v1", KEY, SEES.name)
    # Times without a Z make Cline drop the file.
    times = [entry["updatedAt"] for entry in providers["providers"].values()]
    assert [re.fullmatch(r"[-\d]+T[:\d]+\.\d{3}Z", time) is not None for time in times] == [True, True]
    model = models["providers"]["openai-compatible"]["models"][SEES.name]
    assert (model["contextWindow"], "images" in model["capabilities"]) == (32768, True)


def test_vscode_replaces_its_own_group_alone(tmp_path: Path) -> None:
    path = tmp_path / ".config" / "Code" / "User" / "chatLanguageModels.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('[{"name": "Other", "vendor": "ollama"}]')
    other, group = json.loads(written("vscode", tmp_path)["chatLanguageModels.json"])
    assert (other["name"], group["vendor"], group["apiType"]) == ("Other", "customendpoint", "responses")
    (model,) = group["models"]
    assert model["url"] == "http://127.0.0.1:8000/v1/responses"
    assert (model["maxInputTokens"], model["maxOutputTokens"], model["vision"]) == (24576, 8192, True)
    assert model["supportsReasoningEffort"] == ["low", "medium", "high"]


def test_goose_uses_the_path_of_responses(tmp_path: Path) -> None:
    provider = json.loads(written("goose", tmp_path)["custom_verbatim.json"])
    assert (provider["engine"], provider["base_path"]) == ("openai", "v1/responses")
    assert (provider["base_url"], provider["models"][0]["context_limit"]) == ("http://127.0.0.1:8000", 32768)


def test_llm_has_a_model_and_a_key(tmp_path: Path) -> None:
    files = written("llm", tmp_path)
    (model,) = yaml.safe_load(files["extra-openai-models.yaml"])
    assert (model["model_id"], model["responses"], model["vision"]) == (f"verbatim/{SEES.name}", True, True)
    assert json.loads(files["keys.json"]) == {"verbatim": KEY}


def test_openai_python_needs_variables_alone(tmp_path: Path) -> None:
    assert written("openai-python", tmp_path) == {}
    variables = AGENTS["openai-python"].variables(Connection("http://127.0.0.1:8000/v1", KEY, SEES))
    assert variables == {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1", "OPENAI_API_KEY": KEY}


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("codex", ".codex/config.toml", "# mine\napproval_policy = 'never'\n"),
        ("opencode", ".config/opencode/opencode.jsonc", "// mine\n{}\n"),
        ("llm", ".config/io.datasette.llm/extra-openai-models.yaml", "# mine\n- model_id: x\n"),
    ],
)
def test_the_byte_order_mark_and_the_line_ends_stay(agent: str, name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    edited = written(agent, tmp_path)[path.name]
    assert "mine" in edited
    assert path.read_bytes() == b"\xef\xbb\xbf" + edited.replace("\n", "\r\n").encode()


def test_a_file_in_another_encoding_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"# caf\xe9\n")
    with pytest.raises(CannotEdit, match=r"config\.toml is no text in UTF-8 \(.* at byte 5\): save it as UTF-8\."):
        plan(AGENTS["codex"], Connection("http://127.0.0.1:8000/v1", KEY, SEES), tmp_path, {"CODEX_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("codex", ".codex/config.toml"),
        ("opencode", ".config/opencode/opencode.jsonc"),
        ("zed", ".config/zed/settings.json"),
        ("cline", ".cline/data/settings/models.json"),
        ("vscode", ".config/Code/User/chatLanguageModels.json"),
        ("claude-code", ".claude/settings.json"),
        ("aider", ".aider.model.metadata.json"),
        ("continue", ".continue/config.yaml"),
        ("llm", ".config/io.datasette.llm/extra-openai-models.yaml"),
    ],
)
@pytest.mark.parametrize("content", [b"[broken", b"\xff\xfe"])
def test_file_that_cannot_be_parsed_is_refused_by_name(agent: str, name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(CannotEdit, match=path.name):
        plan(AGENTS[agent], Connection("http://127.0.0.1:8000/v1", KEY, SEES), tmp_path, {})
    assert path.read_bytes() == content


def test_small_context_is_told() -> None:
    assert AGENTS["codex"].context_problem(8192) == (
        "Codex begins with a prompt of about 4,200 tokens, so 8,192 tokens of context are soon full."
    )
    assert [AGENTS[name].context_problem(size) for name, size in (("codex", 32768), ("llm", 1))] == [None, None]


def test_claude_code_has_its_variables_in_the_settings(tmp_path: Path) -> None:
    settings = json.loads(written("claude-code", tmp_path)["settings.json"])
    assert settings["env"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8000"
    assert (settings["env"]["ANTHROPIC_MODEL"], settings["env"]["ANTHROPIC_AUTH_TOKEN"]) == (SEES.name, KEY)
    # Sub-agents with `model: sonnet` would request a model that this server does not have.
    defaults = [value for name, value in settings["env"].items() if name.startswith("ANTHROPIC_DEFAULT_")]
    assert defaults == [SEES.name] * 4
    assert settings["env"]["CLAUDE_CODE_DISABLE_1M_CONTEXT"] == "1", "the context window is that of this model"
    # This server does not check calls of tools: the parameter `safeguards` would be refused.
    assert settings["env"]["CLAUDE_CODE_AUTO_MODE_SERVER"] == "0"
    assert settings["permissions"] == {"defaultMode": "default"}
    path = tmp_path / "other" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"permissions": {"allow": ["Bash"]}, "env": {"A": "1"}}')
    changed = json.loads(written("claude-code", tmp_path, CLAUDE_CONFIG_DIR=str(path.parent))["settings.json"])
    assert (changed["permissions"], changed["env"]["A"]) == ({"allow": ["Bash"], "defaultMode": "default"}, "1")


def test_claude_code_keeps_the_permission_mode_that_a_person_chose(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"permissions": {"defaultMode": "auto"}}')
    assert json.loads(written("claude-code", tmp_path)["settings.json"])["permissions"] == {"defaultMode": "auto"}


def test_continue_has_a_model_of_its_own(tmp_path: Path) -> None:
    config = yaml.safe_load(written("continue", tmp_path)["config.yaml"])
    (model,) = config["models"]
    assert (model["apiBase"], model["model"], model["provider"]) == ("http://127.0.0.1:8000/v1", SEES.name, "openai")
    assert "image_input" in model["capabilities"]
    path = tmp_path / ".continue" / "config.yaml"
    path.write_text("name: Mine\nmodels:\n  - name: x # mine\nrules: []\n")
    text = written("continue", tmp_path)["config.yaml"]
    assert (yaml.safe_load(text)["models"], "# mine\n" in text) == ([{"name": "x"}, model], True)
    path.write_text("name: Mine\nmodels: [{name: x}]\n")
    with pytest.raises(CannotEdit, match=r"not written as a list .* Add this model to 'models' by hand: {\"name\""):
        plan(AGENTS["continue"], Connection("http://127.0.0.1:8000/v1", KEY, SEES), tmp_path, {})


def test_aider_has_the_facts_about_the_model(tmp_path: Path) -> None:
    facts = json.loads(written("aider", tmp_path)[".aider.model.metadata.json"])
    assert facts[f"openai/{SEES.name}"]["max_input_tokens"] == 32768


@pytest.mark.parametrize(
    ("model", "capabilities"),
    [
        (SEES, {"usage": True, "vision": True}),
        (PLAIN, {"usage": True, "vision": False, "builtin_tools": False}),
        (ModelFacts("demo-chat", 32768, supports_images=True), {"usage": True, "vision": True, "builtin_tools": False}),
    ],
)
def test_open_webui_has_the_abilities_of_the_model(model: ModelFacts, capabilities: dict[str, bool]) -> None:
    variables = dict(AGENTS["open-webui"].variables(Connection("http://127.0.0.1:8000/v1", KEY, model)))
    metadata = json.loads(variables.pop("DEFAULT_MODEL_METADATA"))
    assert (metadata, variables) == (
        {"capabilities": capabilities},
        {"OPENAI_API_BASE_URL": "http://127.0.0.1:8000/v1", "OPENAI_API_KEY": KEY},
    )


@pytest.mark.parametrize("agent", sorted(set(AGENTS) - CHAT - MESSAGES))
def test_check_sends_an_effort_that_the_model_takes(agent: str) -> None:
    assert "reasoning" not in request_body(PLAIN, agent)
    if agent != "openai-python":
        assert request_body(SEES, agent)["reasoning"] == {"effort": "medium", "summary": "auto"}
