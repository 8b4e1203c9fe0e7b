"""`manage.py backup` while responses are written, and `restore` into another data folder, against real servers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import DATABASE, ROLE, default_url
from responses_app.server.backup.manifest import DUMP, NAME, BackupError, Manifest, describe
from tests.support import plain_http
from tests.support.server.requests import call, create, retrieve
from tests.support.server.serve_command import EmptyServer, Server
from tests.support.waiting import wait_until
from tests.support.web.chat_visitor import tape


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backup")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with Server(folder / "data", "--engine", tape(folder)) as server:
        yield server.ready()


@pytest.fixture(scope="module")
def backup(server: Server, folder: Path) -> Path:
    """A backup that was made while responses were written; `expected.json` beside it lists the expected objects."""
    uploaded = call(server, "POST", "files", files={"file": ("a.txt", b"Foxes hunt." * 1000)}, data={"purpose": "user_data"})
    container = call(server, "POST", "containers", json={"name": "c"}).json()["id"]
    path = f"containers/{container}/files"
    in_container = call(server, "POST", path, files={"file": ("b.txt", b"Bread.")}).json()["id"]
    conversation = call(server, "POST", "conversations", json={}).json()["id"]
    response = create(server, model="chat", input="markdown", conversation=conversation)
    expected = {"file": uploaded.json()["id"], "container_file": f"{path}/{in_container}", "response": response["id"]}
    (folder / "expected.json").write_text(json.dumps(expected))
    ended, count = threading.Event(), [0]

    def write() -> None:
        while not ended.is_set():
            create(server, model="chat", input="markdown")
            count[0] += 1

    writing = threading.Thread(target=write)
    writing.start()
    try:
        server.manage("backup", str(folder / "backup"))
    finally:
        ended.set()
        writing.join()
    assert count[0] > 0
    return folder / "backup"


def manage(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `manage.py` with a data folder whose server does not run."""
    return Server.run_manage(data, *arguments)


def test_a_backup_is_complete_and_closed_to_others(backup: Path) -> None:
    manifest = json.loads((backup / NAME).read_text())
    assert manifest["rows"]["responses"] >= 1
    assert manifest["missing"] == []
    paths = {file["path"] for file in manifest["files"]}
    assert {DUMP, "keys/secret_key", "keys/api_key"} <= paths
    assert len([path for path in paths if path.startswith("files/")]) == 2
    for path in backup.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
    assert backup.stat().st_mode & 0o777 == 0o700


def test_check_writes_nothing_and_finds_each_change(backup: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", backup, copy], check=True)
    done = manage(tmp_path / "data", "restore", str(copy), "--check")
    assert (done.returncode, "is complete" in done.stdout) == (0, True), done.stderr
    file = next((copy / "files").rglob("file-*"))
    for name, path in (
        ("checksum", file),
        ("checksum", copy / DUMP),
        ("cannot be read", copy / "keys" / "api_key"),
        (NAME, copy / NAME),
    ):
        if name == "checksum":
            whole = path.read_bytes()
            path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        else:
            whole = path.read_bytes()
            path.unlink()
        done = manage(tmp_path / "data", "restore", str(copy), "--check")
        assert done.returncode == 1
        assert name in done.stderr
        path.write_bytes(whole)
    assert not (tmp_path / "data").exists()
    # Nor does a restore that is refused.
    (copy / NAME).unlink()
    assert "is no complete backup" in manage(tmp_path / "data", "restore", str(copy)).stderr
    assert not (tmp_path / "data").exists()


def test_a_backup_of_a_later_version_is_refused_and_other_apps_do_not_count(backup: Path, tmp_path: Path) -> None:
    copy = tmp_path / "backup"
    subprocess.run(["cp", "-r", backup, copy], check=True)
    manifest = json.loads((copy / NAME).read_text())
    others = {**manifest["migrations"], "shop": "0042_prices", "auth": "9999_future"}
    for migrations, code in ((others, 0), ({**others, "responses_app": "9999_future"}, 1)):
        (copy / NAME).write_text(json.dumps({**manifest, "migrations": migrations}))
        done = manage(tmp_path / "data", "restore", str(copy), "--check")
        assert done.returncode == code, done.stderr
    assert "is of a later version of the server (migration 9999_future)" in done.stderr


def test_check_names_a_secret_key_that_cannot_read_the_backup(backup: Path, tmp_path: Path) -> None:
    copy, data = tmp_path / "copy", tmp_path / "data"
    subprocess.run(["cp", "-r", backup, copy], check=True)
    key = (copy / "keys" / "secret_key").read_text().strip()
    # As of a server with SECRET_KEY in the environment.
    (copy / "keys" / "secret_key").unlink()
    manifest = json.loads((copy / NAME).read_text())
    manifest["files"] = [file for file in manifest["files"] if file["path"] != "keys/secret_key"]
    (copy / NAME).write_text(json.dumps(manifest))
    for secret_key, is_named in ((key, False), ("another key with more than thirty-two characters", True)):
        done = Server.run_manage(data, "restore", str(copy), "--check", SECRET_KEY=secret_key)
        assert done.returncode == 0, done.stderr
        assert ("SECRET_KEY is not that of the backup" in done.stderr) == is_named
    assert not data.exists()


MANIFEST = '{"created_at": "", "postgres": %s, "secret_key_id": "", "migrations": %s, "rows": {}, "files": []}'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "is not what backup writes"),
        ('{"format": 1, "files": [1]}', "is not what backup writes"),
        ('{"format": 1, "files": []}', "is not what backup writes"),
        (MANIFEST % ("null", "{}"), "is not what backup writes"),
        (MANIFEST % ('"none"', "{}"), "is not what backup writes"),
        (MANIFEST % ('"18.4"', "[1]"), "is not what backup writes"),
        ('{"format": 2}', "Restore it with a later version"),
        ("{", "cannot be read"),
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(BackupError, match=sentence):
        Manifest.read(tmp_path)


def test_a_backup_needs_an_empty_folder(server: Server, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    done = manage(server.folder, "backup", str(tmp_path))
    assert (done.returncode, "is not empty" in done.stderr) == (1, True)
    done = manage(server.folder, "backup", "/proc/verbatim")
    assert done.returncode == 1
    assert "/proc/verbatim cannot be made (No such file or directory). Name a folder that this account may make." in done.stderr


def test_a_backup_that_fails_leaves_nothing(server: Server, backup: Path, tmp_path: Path) -> None:
    command = f"ulimit -f 8; exec {sys.executable} {ROOT}/manage.py backup {tmp_path}/backup"
    environ = {**os.environ, "RESPONSES_DATA_DIR": str(server.folder)}
    environ.pop("DATABASE_URL", None)
    done = subprocess.run(["sh", "-c", command], env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("CommandError: ")
    sentence = rf"A backup in {tmp_path}/backup needs up to [1-9][\d,]* MiB, and [\d,]+ MiB are free there: make room, or name"
    assert re.search(sentence, done.stderr), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_disk_of_files_that_is_not_mounted_makes_no_backup_without_them(server: Server, backup: Path, tmp_path: Path) -> None:
    (tmp_path / "mount").mkdir()
    target = str(tmp_path / "backup")
    done = Server.run_manage(server.folder, "backup", target, RESPONSES_FILE_STORAGE=f"file://{tmp_path}/mount")
    assert done.returncode == 1
    assert f"{tmp_path}/mount is not the folder with the stored files" in done.stderr
    assert not (tmp_path / "backup").exists()


def test_a_database_without_tables_is_named(server: Server, tmp_path: Path) -> None:
    server.sql(f"CREATE DATABASE empty OWNER {ROLE} TEMPLATE template0")
    url = default_url(server.folder).replace(f"/{DATABASE}?", "/empty?")
    done = Server.run_manage(tmp_path / "data", "backup", str(tmp_path / "backup"), DATABASE_URL=url)
    assert done.returncode == 1
    assert (
        "the tables are missing or of an earlier version: run the command migrate, or start bin/serve, which does so"
        in done.stderr
    )
    assert "LINE 1" not in done.stderr


def test_a_backup_is_restored_into_a_postgres_of_your_own_and_a_missing_data_folder(
    server: Server, backup: Path, tmp_path: Path
) -> None:
    server.sql(f"CREATE DATABASE own OWNER {ROLE} TEMPLATE template0")
    url = default_url(server.folder).replace(f"/{DATABASE}?", "/own?")
    done = Server.run_manage(tmp_path / "data", "restore", str(backup), DATABASE_URL=url)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / "secret_key").read_bytes() == (server.folder / "secret_key").read_bytes()
    # Of a process that runs, and of one that has ended before the clock of the database was set back.
    for seconds_ahead, code in ((10, 1), (3600, 0)):
        with psycopg.connect(url) as link:
            link.execute("DELETE FROM responses_app_worker")
            link.execute(
                "INSERT INTO responses_app_worker (uid, name, served_models, heartbeat_at)"
                " VALUES (gen_random_uuid(), 'host-a:1', '{}', clock_timestamp() + make_interval(secs => %s))",
                [seconds_ahead],
            )
        done = Server.run_manage(tmp_path / "data", "restore", str(backup), "--overwrite", DATABASE_URL=url)
        assert done.returncode == code, done.stderr
        assert ("Stop the server first" in done.stderr) == bool(code)


def test_a_restore_that_fails_leaves_the_former_tables(server: Server, backup: Path, tmp_path: Path) -> None:
    server.sql(f"CREATE DATABASE former OWNER {ROLE} TEMPLATE template0")
    url = default_url(server.folder).replace(f"/{DATABASE}?", "/former?")
    assert Server.run_manage(tmp_path / "data", "restore", str(backup), DATABASE_URL=url).returncode == 0
    with psycopg.connect(url) as link:
        link.execute("UPDATE responses_app_worker SET name = 'former', heartbeat_at = clock_timestamp() - interval '1 hour'")
    cut = shutil.copytree(backup, tmp_path / "cut")
    os.truncate(cut / DUMP, (cut / DUMP).stat().st_size - 8)
    manifest = Manifest.read(cut)
    replace(manifest, files=[describe(cut, cut / file.path) for file in manifest.files]).write(cut)
    done = Server.run_manage(tmp_path / "data", "restore", str(cut), "--overwrite", DATABASE_URL=url)
    assert "restore of the database failed" in done.stderr
    with psycopg.connect(url) as link:
        assert link.execute("SELECT DISTINCT name FROM responses_app_worker").fetchall() == [("former",)]


def test_a_disk_without_room_for_the_files_is_named_before_a_table_is_replaced(
    server: Server, backup: Path, tmp_path: Path
) -> None:
    server.sql(f"CREATE DATABASE small OWNER {ROLE} TEMPLATE template0")
    url = default_url(server.folder).replace(f"/{DATABASE}?", "/small?")
    command = f"ulimit -f 8; exec {sys.executable} {ROOT}/manage.py restore {backup}"
    environ = {**os.environ, "RESPONSES_DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": url}
    done = subprocess.run(["sh", "-c", command], env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr.startswith(
        "CommandError: the backup was not restored: [Errno 27] File too large. Make room if a disk is"
    )
    with psycopg.connect(url) as link:
        assert link.execute("SELECT to_regclass('responses_app_response')").fetchone() == (None,)


def test_a_running_server_is_not_overwritten(server: Server, backup: Path) -> None:
    done = manage(server.folder, "restore", str(backup), "--overwrite")
    assert (done.returncode, "A server runs" in done.stderr) == (1, True)


def test_a_backup_is_restored_into_a_new_folder_and_served(server: Server, backup: Path, tmp_path: Path) -> None:
    expected, data = json.loads((backup.parent / "expected.json").read_text()), tmp_path / "new"
    done = manage(data, "restore", str(backup))
    assert done.returncode == 0, done.stderr
    again = manage(data, "restore", str(backup))
    assert (again.returncode, "--overwrite replaces" in again.stderr) == (1, True)
    done = manage(data, "restore", str(backup), "--overwrite")
    assert done.returncode == 0, done.stderr
    with EmptyServer(data, "--engine", tape(tmp_path)) as restored:
        restored.ready()
        assert restored.key == server.key
        for path in (
            f"responses/{expected['response']}",
            f"files/{expected['file']}/content",
            f"{expected['container_file']}/content",
        ):
            answers = [call(one, "GET", path) for one in (server, restored)]
            assert [answer.status_code for answer in answers] == [200, 200], path
            assert answers[0].content == answers[1].content
        assert create(restored, model="chat", input="markdown")["status"] == "completed"
        assert retrieve(restored, expected["response"])["status"] == "completed"
        page = plain_http.get(f"{restored.url}/health", timeout=180)
        assert page.status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_backup_that_a_signal_ends_leaves_no_postgres(backup: Path, tmp_path: Path, number: int) -> None:
    data = tmp_path / "data"
    manage(data, "restore", str(backup)).check_returncode()
    command = [sys.executable, str(ROOT / "manage.py"), "backup", str(unfinished := tmp_path / "unfinished")]
    with subprocess.Popen(["env", "-u", "DATABASE_URL", f"RESPONSES_DATA_DIR={data}", *command]) as process:
        wait_until((unfinished / DUMP).exists)
        process.send_signal(number)
    assert unfinished.exists() == (number == signal.SIGKILL)
    manage(data, "backup", str(tmp_path / "again")).check_returncode()
