"""Makes the database and files of version 0.1.0 with the code of that commit: `python -m tests.support.old_version`.

The commit is checked out into a temporary worktree, and its server is started with the present environment, which has the same
versions of the libraries. The server is killed while it makes a background response. The dump has no owners and is compressed.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2

from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import default_url
from responses_app.server.postgres.cluster import Postgres, server_pids
from responses_app.server.postgres.programs import program_folder
from tests.support.server.serve_command import free_port
from tests.support.waiting import wait_until

# Version 0.1.0: the last commit before the tables of the log changed (migration 0008).
COMMIT: Final = "7091a79a366819cdf0e9538ff15af1db383644f8"
FOLDER: Final = Path(__file__).parents[1] / "upgrade" / "v0_1_0"
SECRET_KEY: Final = "secret key of the upgrade test, of no other use"
API_KEY: Final = "sk-of-the-upgrade-test"
HEADERS: Final = {"Authorization": f"Bearer {API_KEY}"}
LIMIT_S: Final = 60.0
TOOL: Final = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
# Generated texts, in the order of the requests; the last one takes longer than the server lives.
TEXTS: Final = (
    "<|channel|>final<|message|>Hello there!<|return|>",
    "<|channel|>analysis<|message|>They greet me.<|end|><|start|>assistant<|channel|>final<|message|>Hello again!<|return|>",
    '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Paris"}<|call|>',
)


def write_tape(folder: Path, pause_s: float = 0.0) -> str:
    """Write recordings of TEXTS and return the URL of the engine. `pause_s` is the pause behind each token."""
    from openai_harmony import load_harmony_encoding

    encoding = load_harmony_encoding("HarmonyGptOss")
    lines = []
    for text in TEXTS:
        steps: list[dict[str, Any]] = []
        for token in encoding.encode(text, allowed_special="all"):
            steps += [{"tokens": [token]}, *([{"delay": pause_s}] if pause_s else [])]
        lines.append(json.dumps({"chunks": steps}))
    path = folder / str(pause_s) / "tape.jsonl"
    path.parent.mkdir()
    path.write_text("\n".join(lines) + "\n")
    return f"script://{path}?loop=1"


@contextmanager
def old_server(code: Path, data: Path, engine: str, seal_after: str) -> Iterator[str]:
    """Run the server of `code` without its installer, and yield the URL. It is killed at the end."""
    port = free_port()
    command = [sys.executable, "-m", "responses_app.server.processes.main", "--port", str(port), "--engine", engine]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("RESPONSES_", "DATABASE_URL"))}
    environ |= {"RESPONSES_DATA_DIR": str(data), "RESPONSES_API_KEY": API_KEY, "SECRET_KEY": SECRET_KEY}
    environ |= {"RESPONSES_SEAL_AFTER": seal_after, "PYTHONPATH": str(code), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    log = data.with_suffix(f".{port}.log")
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=code, env=environ, stdout=out, stderr=out, start_new_session=True)
    try:
        wait_until(lambda: "Ctrl-C stops it." in log.read_text(), limit_s=120, explain=log.read_text)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # Postgres has a session of its own. SIGQUIT ends it without a checkpoint, as a crash does.
        cluster = data / "postgres"
        os.kill(int((cluster / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        wait_until(lambda: not any(server_pids(cluster)))


def ask(url: str, method: str, path: str, **how: Any) -> dict[str, Any]:
    """Send a request and return the object. Raises httpx2.HTTPStatusError."""
    answer = httpx2.request(method, f"{url}/v1/{path}", headers=HEADERS, timeout=LIMIT_S, **how)
    if answer.is_error:
        raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text}")
    result: dict[str, Any] = answer.json()
    return result


def respond(url: str, **body: Any) -> dict[str, Any]:
    """Create a response."""
    return ask(url, "POST", "responses", json={"model": "tape", "input": "Hi", **body})


def fill(url: str) -> dict[str, Any]:
    """Make objects of every kind. Return the bodies by path, as the server answers GET."""
    conversation = ask(url, "POST", "conversations", json={"metadata": {"topic": "upgrade"}})["id"]
    first = respond(url, metadata={"team": "a"}, instructions="Be kind.")["id"]
    second = respond(url, previous_response_id=first, reasoning={"effort": "low"})["id"]
    called = respond(url, tools=[TOOL], conversation=conversation)["id"]
    background = respond(url, background=True)["id"]
    wait_until(lambda: ask(url, "GET", f"responses/{background}")["status"] == "completed", limit_s=LIMIT_S)
    file = ask(url, "POST", "files", files={"file": ("foxes.txt", b"Foxes hunt at night.\n")}, data={"purpose": "assistants"})[
        "id"
    ]
    store = ask(url, "POST", "vector_stores", json={"name": "animals", "file_ids": [file]})["id"]
    wait_until(lambda: ask(url, "GET", f"vector_stores/{store}")["file_counts"]["completed"] == 1, limit_s=LIMIT_S)
    container = ask(url, "POST", "containers", json={"name": "box"})["id"]
    ask(url, "POST", f"containers/{container}/files", files={"file": ("bread.txt", b"Bread.\n")})
    paths = [f"responses/{uid}" for uid in (first, second, called, background)]
    paths += [f"responses/{uid}/input_items" for uid in (first, second, called)]
    paths += [f"conversations/{conversation}", f"conversations/{conversation}/items", "files", f"files/{file}", "vector_stores"]
    paths += [f"vector_stores/{store}/files", "containers", f"containers/{container}/files"]
    return {path: ask(url, "GET", path) for path in paths}


def dump(data: Path, target: Path) -> None:
    """Write the database of a data folder as compressed SQL."""
    with Postgres(data):
        options = ("--no-owner", "--no-acl", "--schema=public", f"--dbname={default_url(data)}")
        command = [str(program_folder(None) / "pg_dump"), *options]
        text = subprocess.run(command, capture_output=True, check=True).stdout
    target.write_bytes(gzip.compress(text, 9, mtime=0))


def main() -> None:
    """Make the fixture anew."""
    with tempfile.TemporaryDirectory(prefix="upgrade-") as name:
        folder = Path(name)
        code, data = folder / "code", folder / "data"
        subprocess.run(["git", "worktree", "add", "--detach", code, COMMIT], cwd=ROOT, check=True)
        try:
            with old_server(code, data, write_tape(folder), "1") as url:
                bodies = fill(url)
                # The archive needs a moment: a replay must be the same from pages and from rows.
                wait_until(lambda: is_sealed(data), limit_s=LIMIT_S)
            with old_server(code, data, write_tape(folder, 2.0), "off") as url:
                bodies["running"] = respond(url, background=True)["id"]
                path = f"responses/{bodies['running']}"
                wait_until(lambda: ask(url, "GET", path)["status"] == "in_progress", limit_s=LIMIT_S)
            shutil.rmtree(FOLDER, ignore_errors=True)
            FOLDER.mkdir()
            dump(data, FOLDER / "database.sql.gz")
            shutil.copytree(data / "files", FOLDER / "files")
            (FOLDER / "bodies.json").write_text(json.dumps(bodies, indent=1) + "\n")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", code], cwd=ROOT, check=True)


def is_sealed(data: Path) -> bool:
    """Return whether the logs of ended responses are pages."""
    import psycopg

    with psycopg.connect(default_url(data)) as link:
        rows = link.execute("SELECT count(*), (SELECT count(*) FROM responses_app_event) FROM responses_app_logpage").fetchall()
    return bool(rows[0][0]) and not rows[0][1]


if __name__ == "__main__":
    main()
