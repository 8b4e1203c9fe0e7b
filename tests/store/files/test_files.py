"""The Files API on a real server, with the openai package."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import openai
import psycopg
import pytest

from responses_app.installation.data_dir import InUse, lock
from responses_app.installation.database_url import superuser_url
from tests.support import plain_http
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.server.serve_command import Server

DATA = b"name,size\nOslo,1\n"
HOUR_S = 3600


def upload(client: openai.OpenAI, name: str = "cities.csv", data: bytes = DATA, **more: Any) -> Any:
    return client.files.create(file=(name, data), purpose=more.pop("purpose", "user_data"), **more)


def post(shared: Server, body: bytes = b"", boundary: str = "b", **more: Any) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {shared.key}", "Content-Type": f"multipart/form-data; boundary={boundary}"}
    return plain_http.post(f"{shared.url}/v1/files", content=body, headers=headers | more, timeout=30)


def part(name: str, data: bytes, filename: str | None = None) -> bytes:
    file = f'; filename="{filename}"' if filename is not None else ""
    return f'--b\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + data + b"\r\n"


def local_files(shared: Server) -> list[str]:
    return sorted(path.name for name in ("files", "uploads") for path in (shared.folder / name).glob("[!.]*"))


def test_file_is_uploaded_listed_read_and_deleted(shared: Server, client: openai.OpenAI) -> None:
    file = upload(client, expires_after={"anchor": "created_at", "seconds": HOUR_S})
    assert file.id.startswith("file-")
    assert (file.object, file.bytes, file.filename, file.purpose) == ("file", len(DATA), "cities.csv", "user_data")
    assert file.status == "processed"
    assert file.expires_at == file.created_at + HOUR_S
    assert client.files.retrieve(file.id) == file
    assert [each.id for each in client.files.list()] == [file.id]
    content = client.files.content(file.id)
    assert content.content == DATA
    assert content.response.headers["content-disposition"] == 'attachment; filename="cities.csv"'
    assert content.response.headers["x-content-type-options"] == "nosniff"
    deleted = client.files.delete(file.id)
    assert (deleted.id, deleted.deleted, deleted.object) == (file.id, True, "file")
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)
    assert local_files(shared) == []


def test_stored_files_are_readable_by_the_owner_alone(shared: Server, client: openai.OpenAI) -> None:
    file = upload(client)
    folder = shared.folder / "files"
    assert stat.S_IMODE((folder / file.id).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_list_has_pages_order_and_purpose(client: openai.OpenAI) -> None:
    ids = [upload(client, f"{number}.txt", purpose="vision" if number == 1 else "user_data").id for number in range(3)]
    assert [file.id for file in client.files.list(order="asc", limit=2).data] == ids[:2]
    assert [file.id for file in client.files.list(order="asc", limit=1)] == ids
    assert [file.id for file in client.files.list(after=ids[1])] == ids[:1]
    assert [file.id for file in client.files.list(purpose="vision")] == [ids[1]]


@pytest.mark.parametrize("method", ["retrieve", "content", "delete"])
def test_file_of_another_project_is_not_found(client: openai.OpenAI, stranger: openai.OpenAI, method: str) -> None:
    file = upload(client)
    with pytest.raises(openai.NotFoundError):
        getattr(stranger.files, method)(file.id)
    assert list(stranger.files.list()) == []
    assert client.files.retrieve(file.id).id == file.id


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("../x", "x"),
        ("/etc/passwd", "passwd"),
        ("a\\..\\b.txt", "b.txt"),
        ("Übung 1.pdf", "Übung 1.pdf"),
        (".hidden", ".hidden"),
    ],
)
def test_hostile_name_is_shortened_to_its_last_part(shared: Server, client: openai.OpenAI, name: str, stored: str) -> None:
    file = upload(client, name)
    assert file.filename == stored
    assert local_files(shared) == [file.id]
    assert client.files.content(file.id).content == DATA


END = b"--b--\r\n"
PURPOSE = part("purpose", b"user_data")
FILE = part("file", DATA, "a.txt")


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        pytest.param(PURPOSE + END, "file", "missing_required_parameter", id="no file"),
        pytest.param(FILE + END, "purpose", "missing_required_parameter", id="no purpose"),
        pytest.param(FILE + part("purpose", b"fun") + END, "purpose", "invalid_value", id="unknown purpose"),
        pytest.param(PURPOSE + part("file", b"", "a.txt") + END, "file", "invalid_value", id="empty file"),
        pytest.param(PURPOSE + part("file", DATA, "..") + END, "file", "missing_required_parameter", id="name of a folder"),
        pytest.param(PURPOSE + part("file", DATA) + END, "file", "invalid_type", id="file without a name"),
        pytest.param(PURPOSE + FILE + FILE + END, "file", "invalid_value", id="two files"),
        pytest.param(PURPOSE + PURPOSE + FILE + END, "purpose", "invalid_value", id="two purposes"),
        pytest.param(PURPOSE + FILE + part("mask", DATA, "m.png") + END, "mask", "unknown_parameter", id="other file"),
        pytest.param(PURPOSE + FILE + part("more", b"1") + END, "more", "unknown_parameter", id="other field"),
        pytest.param(PURPOSE + part("file", DATA, "n" * 256) + END, "file", "string_above_max_length", id="long name"),
        pytest.param(PURPOSE + FILE, None, None, id="no end"),
        pytest.param(b"", None, None, id="no body"),
        pytest.param(b"no form at all", None, None, id="no form"),
        pytest.param(
            PURPOSE + FILE + part("expires_after[anchor]", b"created_at") + END,
            "expires_after.seconds",
            "missing_required_parameter",
            id="no seconds",
        ),
        pytest.param(
            PURPOSE + FILE + part("expires_after[anchor]", b"now") + part("expires_after[seconds]", b"3600") + END,
            "expires_after.anchor",
            "invalid_value",
            id="unknown anchor",
        ),
        pytest.param(
            PURPOSE + FILE + part("expires_after[anchor]", b"created_at") + part("expires_after[seconds]", b"59") + END,
            "expires_after.seconds",
            "invalid_value",
            id="few seconds",
        ),
    ],
)
def test_invalid_form_is_refused_and_leaves_nothing(shared: Server, body: bytes, param: str | None, code: str | None) -> None:
    answer = post(shared, body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code), error
    assert local_files(shared) == []


@pytest.mark.parametrize("fields", [part("purpose", b"x" * (8 * 1024 * 1024)), PURPOSE * 1001], ids=["long", "many"])
def test_form_with_much_beside_the_file_is_too_large(shared: Server, fields: bytes) -> None:
    answer = post(shared, fields + FILE + END)
    assert answer.status_code == 413
    assert "DATA_UPLOAD" not in answer.text
    assert local_files(shared) == []


def test_upload_needs_a_multipart_form(shared: Server) -> None:
    answer = post(shared, b"{}", **{"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "multipart/form-data" in answer.json()["error"]["message"]


def test_upload_needs_a_key(shared: Server) -> None:
    assert post(shared, PURPOSE + FILE + END, Authorization="Bearer sk-wrong").status_code == 401


def test_disconnect_in_the_middle_of_an_upload_leaves_nothing(shared: Server, client: openai.OpenAI) -> None:
    head = (
        f"POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {shared.key}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", shared.port)) as connection:
        connection.sendall(head.encode() + PURPOSE + part("file", b"x" * 100_000, "a.txt"))
    assert list(client.files.list()) == []
    assert local_files(shared) == []


@pytest.fixture
def small_server(tmp_path: Path, tape: str) -> Iterator[Server]:
    from tests.support.server.serve_command import Server

    server = Server(
        tmp_path / "data",
        "--engine",
        tape,
        RESPONSES_API_KEY="sk-small-server",
        RESPONSES_FILE_MIB="1",
        RESPONSES_FILES_PER_PROJECT="2",
        RESPONSES_FILES_MIB_PER_PROJECT="1",
    )
    yield server.ready()
    server.end()


def test_limits_of_a_file_and_of_a_project_and_the_clean_up_at_start(small_server: Server) -> None:
    client = openai.OpenAI(base_url=f"{small_server.url}/v1", api_key=small_server.key, max_retries=0)
    with pytest.raises(openai.APIStatusError) as too_large:
        upload(client, data=b"x" * (1024 * 1024 + 1))
    assert (too_large.value.status_code, too_large.value.param) == (413, "file")
    with pytest.raises(openai.APIStatusError) as far_too_large:
        upload(client, data=b"x" * (3 * 1024 * 1024))
    assert far_too_large.value.status_code == 413
    first = upload(client, data=b"x" * 1024 * 1000)
    with pytest.raises(openai.BadRequestError) as full:
        upload(client, data=b"x" * 1024 * 1000)
    assert full.value.code == "file_quota_exceeded"
    second = upload(client)
    with pytest.raises(openai.BadRequestError) as many:
        upload(client)
    assert many.value.code == "file_quota_exceeded"
    assert local_files(small_server) == sorted([first.id, second.id])

    # As after a kill between the steps of an upload and of a deletion: the rows decide how each ends.
    small_server.stop(signal.SIGTERM)
    for name, folder in (("file-stray", "files"), ("file-part.part", "uploads")):
        (small_server.folder / folder / name).write_bytes(DATA)
    for name in ("file-stray", "file-part", second.id):
        (small_server.folder / "uploads" / f"{name}.pending").touch()
    from tests.support.server.serve_command import Server

    again = Server(small_server.folder, *small_server.process.args[3:], RESPONSES_API_KEY=small_server.key).ready()  # type: ignore[index]
    try:
        wait_until(
            lambda: local_files(again) == sorted([first.id, second.id]), limit_s=30, explain=lambda: str(local_files(again))
        )
        expire(again, first.id)
        wait_until(lambda: local_files(again) == [second.id], limit_s=30)
        assert "files: 1 would be deleted" in again.manage("prune", "--files", "0s", "--dry-run")
        assert "files: 0 would be deleted" in again.manage("prune", "--files", "1d", "--dry-run")
        assert "1 files" in again.manage("erase", "--project", "default")
        again.manage("erase", "--project", "default", "--yes")
        assert local_files(again) == []
    finally:
        again.end()


def test_kill_in_the_middle_of_uploads_leaves_whole_files_alone(small_server: Server) -> None:
    uploads = [socket.create_connection(("127.0.0.1", small_server.port)) for _ in range(3)]
    body = PURPOSE + part("file", b"x" * 900_000, "a.txt") + END
    head = (
        f"POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {small_server.key}\r\n"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    for connection, size in zip(uploads, (len(body), len(body) // 2, 100), strict=True):
        connection.sendall(head.encode() + body[:size])
    wait_until(lambda: bool(local_files(small_server)), limit_s=60)
    small_server.process.kill()
    small_server.process.wait()
    wait_until(lambda: not is_locked(small_server.folder), limit_s=30)
    from tests.support.server.serve_command import Server

    again = Server(small_server.folder, *small_server.process.args[3:], RESPONSES_API_KEY=small_server.key).ready()  # type: ignore[index]
    try:
        client = openai.OpenAI(base_url=f"{again.url}/v1", api_key=again.key)
        wait_until(lambda: local_files(again) == sorted(file.id for file in client.files.list()), limit_s=30)
        assert len(local_files(again)) <= 1
        assert all(len(client.files.content(file.id).content) == file.bytes == 900_000 for file in client.files.list())
    finally:
        again.end()
        for connection in uploads:
            connection.close()


def is_locked(folder: Path) -> bool:
    try:
        os.close(lock(folder))
    except InUse:
        return True
    return False


def expire(server: Server, uid: str) -> None:
    with psycopg.connect(superuser_url(server.folder), autocommit=True) as connection:
        connection.execute("UPDATE responses_app_file SET expires_at = now() WHERE uid = %s", [uid])
