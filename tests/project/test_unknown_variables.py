"""Names of environment variables: every one that the code reads is known, and a misspelt one is described."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from django.conf import settings

from project.env import READ
from project.unknown_variables import INACTIVE_TYPES, PROGRAM_VARIABLES, describe_doubtful_values, describe_unknown
from responses_app.installation.data_dir import ROOT
from responses_app.schemas.tools import API_SERVER_TOOLS

FOLDERS = ("bin", "bench", "project", "responses_app", "tests")
# Names that the tests themselves misspell.
MISSPELT = {"RESPONSES_MAX_CONCURENT", "RESPONSES_MODLES", "RESPONSES_ZZZZZZ", "RESPONSES_SANDBOX_TOKEN_FIL"}


def test_unknown_names_are_described_with_the_nearest_spelling() -> None:
    environ = dict.fromkeys((*MISSPELT, *PROGRAM_VARIABLES, "RESPONSES_MODELS", "RESPONSES_SANDBOX_TOKEN_FILE", "PATH"), "x")
    assert list(describe_unknown(environ)) == [
        "RESPONSES_MAX_CONCURENT is no setting of this server, and has no effect: did you mean RESPONSES_MAX_CONCURRENT?",
        "RESPONSES_MODLES is no setting of this server, and has no effect: did you mean RESPONSES_MODELS?",
        "RESPONSES_SANDBOX_TOKEN_FIL is no setting of this server, and has no effect: did you mean RESPONSES_SANDBOX_TOKEN_FILE?",
        "RESPONSES_ZZZZZZ is no setting of this server, and has no effect (docs/settings.md lists the settings)",
    ]


def test_every_name_that_the_code_uses_is_known() -> None:
    """Names in quotes, and assignments of shell scripts. Names of Django's settings are no variables."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in ("", ".py") and path.is_file()]
    pattern = re.compile(r"\"(RESPONSES_[A-Z_]+)\"|\b(RESPONSES_[A-Z_]+)=")
    names = {match[1] or match[2] for path in paths for match in pattern.finditer(path.read_text(errors="replace"))}
    known = {
        *READ,
        *PROGRAM_VARIABLES,
        *MISSPELT,
        "RESPONSES_MODLES",
        "RESPONSES_API_KEY_FILE",
        *(f"{name}_FILE" for name in READ),
    }
    assert {name for name in names - known if not hasattr(settings, name)} == set()


def test_misspelt_tool_type_and_short_key_are_described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(
        "RESPONSES_INACTIVE_TOOLS", "web_search_preview_2025_03_11 web_search_2025_08_26 mcp web_serch shell mcpx"
    )
    monkeypatch.setenv("RESPONSES_API_KEY", "sk-1")
    misspelt, other, longer, short = describe_doubtful_values()
    assert misspelt.endswith("names 'web_serch', which is no type of a server tool: did you mean web_search?")
    assert "'shell'" in other
    assert "the types are code_interpreter, file_search" in other
    assert longer.endswith("names 'mcpx', which is no type of a server tool: did you mean mcp?")
    assert "RESPONSES_API_KEY has 4 characters" in short
    assert "sk-1" not in short
    monkeypatch.setenv("RESPONSES_INACTIVE_TOOLS", "")
    monkeypatch.setenv("RESPONSES_API_KEY", "sk-" + "x" * 13)
    assert list(describe_doubtful_values()) == []
    (tmp_path / "key").write_text("sk-12\n")
    monkeypatch.setenv("RESPONSES_API_KEY_FILE", str(tmp_path / "key"))
    (short,) = describe_doubtful_values()
    assert "RESPONSES_API_KEY_FILE has 5 characters" in short


def test_short_and_joined_secrets_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY_FALLBACKS", f"{'a' * 32} {'b' * 31} {'c' * 40},{'d' * 40}")
    monkeypatch.setenv("RESPONSES_SANDBOX_TOKEN", "s3cret")
    short, joined, token = describe_doubtful_values()
    assert short.startswith("Key 2 of SECRET_KEY_FALLBACKS has 31 characters and can be guessed")
    assert joined.startswith("Key 3 of SECRET_KEY_FALLBACKS has a comma: white space separates the keys")
    assert token.startswith("RESPONSES_SANDBOX_TOKEN has 6 characters and can be guessed")
    assert "s3cret" not in token


def test_proxies_with_every_address_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESPONSES_TRUSTED_PROXIES", "10.0.0.0/8, ::/0 0.0.0.0/0")
    sentences = list(describe_doubtful_values())
    assert [sentence.split()[1] for sentence in sentences] == ["::/0", "0.0.0.0/0"]
    assert all("a client can claim any other in X-Forwarded-For" in sentence for sentence in sentences)


def test_home_folder_that_no_shell_has_replaced_is_described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, is_described in (("~/data", True), (f"{tmp_path}/~/data", True), (f"{tmp_path}/a~", False), ("", False)):
        monkeypatch.setenv("RESPONSES_DATA_DIR", folder)
        sentences = list(describe_doubtful_values())
        assert bool(sentences) == is_described
        assert all(f"the data is in {tmp_path}/~/data: write" in sentence for sentence in sentences)


def test_missing_programs_of_mcp_servers_are_described_without_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "program").touch(0o755)
    (tmp_path / "s3cret").touch(0o644)
    servers = {
        "runs": {"command": [sys.executable, "server.py"]},
        "found": {"command": ["program"], "env": {"PATH": str(tmp_path)}},
        "remote": {"url": "https://docs.example.com/mcp"},
        "missing": {"command": ["/nonexistent/s3cret"]},
        "forbidden": {"command": [str(tmp_path / "s3cret")]},
        "nowhere": {"command": ["program"]},
    }
    monkeypatch.setenv("RESPONSES_MCP_SERVERS", json.dumps(servers))
    sentences = list(describe_doubtful_values())
    assert [sentence.split("'")[1] for sentence in sentences] == ["missing", "forbidden", "nowhere"]
    assert all("the program of 'command' is missing, or this account may not run it" in sentence for sentence in sentences)
    assert "s3cret" not in "".join(sentences)


def test_types_of_server_tools_can_be_inactive() -> None:
    assert all(kind.startswith(INACTIVE_TYPES) for kind in API_SERVER_TOOLS)
