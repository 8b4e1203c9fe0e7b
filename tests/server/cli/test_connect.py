"""The command `manage.py connect` beside a running server: files, backups, the check, and refusals in a sentence.

A command with a key needs no database, so that it runs in the process of the tests.
"""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command

from responses_app.installation.database_url import superuser_url
from tests.support import plain_http
from tests.support.server.serve_command import Server, free_port

MINE = '# mine\nmodel = "old"\n'


def connect(server: Server, home: Path, *arguments: str) -> str:
    return server.manage("connect", *arguments, "--url", server.url, "--home", str(home))


def connect_with_key(key: str, home: Path, *arguments: str) -> str:
    """Run the command in this process with a key, and return the output."""
    output = io.StringIO()
    call_command("connect", *arguments, "--key", key, "--home", str(home), stdout=output)
    return output.getvalue()


def refusal(key: str, home: Path, *arguments: str) -> str:
    """Return the error of a command that must fail."""
    with pytest.raises(CommandError) as error:
        connect_with_key(key, home, *arguments)
    return str(error.value)


def keys(server: Server) -> int:
    """Return the number of keys of this server."""
    with psycopg.connect(superuser_url(server.folder)) as connection:
        row = connection.execute("SELECT count(*) FROM responses_app_apikey").fetchone()
    assert row
    return int(row[0])


def test_connect_shows_a_diff_writes_with_a_backup_and_checks(shared: Server, tmp_path: Path) -> None:
    config = tmp_path / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(MINE)
    printed = connect(shared, tmp_path, "codex", "--write")
    key = (config.parent / "verbatim.key").read_text().strip()
    assert key not in printed
    assert '-model = "old"\n+model = "tape"' in printed
    assert "131072 tokens of context, efforts low, medium, high, takes no pictures. The model answered:" in printed
    (backup,) = config.parent.glob("config.toml.*.bak")
    assert (backup.read_text(), str(backup) in printed) == (MINE, True)
    assert plain_http.get(f"{shared.url}/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code == 200


def test_connect_keeps_the_key_of_an_earlier_run(shared: Server, tmp_path: Path) -> None:
    connect(shared, tmp_path, "codex", "--write")
    before = keys(shared)
    again = connect(shared, tmp_path, "codex", "--write")
    assert (keys(shared), "was written" in again) == (before, False)
    key_file = tmp_path / ".codex" / "verbatim.key"
    first = key_file.read_text().strip()
    other = connect(shared, tmp_path, "codex", "--write", "--project", "other")
    assert keys(shared) == before + 1
    assert key_file.read_text().strip() not in (first, "")
    assert first not in other


def test_connect_leaves_no_key_if_a_file_cannot_be_written(shared: Server, tmp_path: Path) -> None:
    (tmp_path / ".codex").symlink_to("/proc/nowhere")
    before = keys(shared)
    with pytest.raises(subprocess.CalledProcessError) as error:
        connect(shared, tmp_path, "codex", "--write")
    assert "cannot be written" in error.value.stderr
    assert "Traceback" not in error.value.stderr
    assert keys(shared) == before


def test_connect_without_write_prints_all_and_writes_nothing(shared: Server, tmp_path: Path) -> None:
    printed = connect(shared, tmp_path, "opencode")
    assert re.search(r"^sk-\S{20,}$", printed, re.MULTILINE)
    assert "Nothing was written: add --write" in printed
    assert list(tmp_path.iterdir()) == []
    hint = f'delete "connect opencode" at {shared.url}/keys if you do not use it'
    assert hint in printed
    assert "The key is new" not in connect_with_key(shared.key, tmp_path, "opencode", "--url", shared.url)
    exports = connect_with_key(shared.key, tmp_path, "openai-python", "--url", shared.url)
    assert f"export OPENAI_BASE_URL={shared.url}/v1" in exports
    assert "Nothing was written" not in connect_with_key(shared.key, tmp_path, "open-webui", "--url", shared.url)


def test_connect_refuses_with_a_sentence(shared: Server, tmp_path: Path) -> None:
    nobody, address = f"http://127.0.0.1:{free_port()}", ("--url", shared.url)
    assert f"No server answers at {nobody}/v1/models" in refusal(shared.key, tmp_path, "zed", "--url", nobody)
    unknown = refusal(shared.key, tmp_path, "zed", *address, "--model", "nope")
    assert f"The server at {shared.url}/v1 has no model 'nope'. Its models: tape." in unknown
    assert "does not know the key" in refusal("sk-unknown", tmp_path, "zed", *address)
    for key in ("sk-ä", "sk-a\nb", "sk-a b"):
        assert "--key holds characters that no key has" in refusal(key, tmp_path, "zed", *address)
    assert "http://" in refusal(shared.key, tmp_path, "zed", "--url", "localhost")
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text("model = ")
    assert "config.toml cannot be edited: no TOML" in refusal(shared.key, tmp_path, "codex", *address, "--write")
    assert (tmp_path / ".codex" / "config.toml").read_text() == "model = "


def test_connect_names_a_proxy_that_does_not_reach_the_server(
    shared: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    refused = refusal(shared.key, tmp_path, "zed", "--url", shared.url)
    assert "The request went to the proxy of HTTP_PROXY: if the server needs none, add 127.0.0.1 to NO_PROXY" in refused
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert "The model answered" in connect_with_key(shared.key, tmp_path, "zed", "--url", shared.url)


@pytest.mark.parametrize("agent", ["claude-code", "continue", "aider", "open-webui"])
def test_clients_of_other_formats_are_checked_in_their_format(shared: Server, tmp_path: Path, agent: str) -> None:
    printed = connect_with_key(shared.key, tmp_path, agent, "--url", shared.url, "--write")
    assert re.search(r"The model answered: \d+ tokens in, \d+ tokens out\.", printed)
