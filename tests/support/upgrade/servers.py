"""Servers of earlier versions: the code of a commit, a data folder with stored objects, and the process."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import default_url
from responses_app.server.postgres.cluster import Postgres, server_pids
from responses_app.server.postgres.programs import program_folder
from tests.support.server.serve_command import free_port
from tests.support.suite import data_template
from tests.support.upgrade.client import OldServer
from tests.support.upgrade.versions import API_KEY, SECRET_KEY, Version
from tests.support.waiting import wait_until


def extract_code(version: Version, folder: Path) -> bool:
    """Write the code of the version into `folder`. Return False in a checkout without its commit."""
    archive = subprocess.run(["git", "archive", version.commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        return False
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return True


def restore_data(version: Version, data: Path) -> None:
    """Make a data folder with the stored database and files of the version."""
    # A copied cluster is made faster than a new one.
    data_template.copy_to(data)
    with Postgres(data):
        script = b"DROP SCHEMA public CASCADE;" + gzip.decompress((version.folder / "database.sql.gz").read_bytes())
        psql, options = str(program_folder(None) / "psql"), ("--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1")
        subprocess.run([psql, *options, "--output=/dev/null", default_url(data)], input=script, check=True)
    shutil.copytree(version.folder / "files", data / "files")
    (data / "secret_key").write_text(SECRET_KEY)


@contextmanager
def old_server(code: Path, data: Path, engine: str, seal_after: str) -> Iterator[OldServer]:
    """Run the server of `code` without the installer, and kill the server at the end."""
    port = free_port()
    command = [sys.executable, "-m", "responses_app.server.processes.main", "--port", str(port), "--engine", engine]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("RESPONSES_", "DATABASE_URL"))}
    environ |= {"RESPONSES_DATA_DIR": str(data), "RESPONSES_API_KEY": API_KEY, "SECRET_KEY": SECRET_KEY}
    environ |= {"RESPONSES_SEAL_AFTER": seal_after, "PYTHONPATH": str(code), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    environ |= {"RESPONSES_WEBHOOK_PRIVATE_HOSTS": "127.0.0.1", "RESPONSES_STORE_API_FORMATS": "1"}
    log = data.with_suffix(f".{port}.log")
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=code, env=environ, stdout=out, stderr=out, start_new_session=True)
    try:
        wait_until(lambda: "Ctrl-C stops it." in log.read_text(), limit_s=120, explain=log.read_text)
        yield OldServer(f"http://127.0.0.1:{port}", code, environ)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # Postgres has a session of its own. SIGQUIT ends it without a checkpoint, as a crash does.
        cluster = data / "postgres"
        os.kill(int((cluster / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        wait_until(lambda: not any(server_pids(cluster)))
