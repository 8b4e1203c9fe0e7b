"""Program that makes the data of a version with the code of that version: `python -m tests.support.upgrade 0.2.0`.

The commit is checked out into a temporary worktree, and its server is started with the present environment, which has the same
versions of the libraries. The server is killed while it makes a background response. The dump has no owners and is compressed.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import default_url
from responses_app.server.postgres.cluster import Postgres
from responses_app.server.postgres.programs import program_folder
from tests.support.upgrade import objects
from tests.support.upgrade.client import LIMIT_S
from tests.support.upgrade.servers import old_server
from tests.support.upgrade.versions import TEXTS, VERSIONS, Version, write_tape
from tests.support.waiting import wait_until
from tests.support.webhook_receiver import webhook_receiver

PAUSE_S: Final = 2.0


def dump(data: Path, target: Path) -> None:
    """Write the database of a data folder as compressed SQL."""
    with Postgres(data):
        options = ("--no-owner", "--no-acl", "--schema=public", f"--dbname={default_url(data)}")
        command = [str(program_folder(None) / "pg_dump"), *options]
        text = subprocess.run(command, capture_output=True, check=True).stdout
    target.write_bytes(gzip.compress(text, 9, mtime=0))


def make(version: Version, code: Path, folder: Path) -> None:
    """Make the data of a version anew with the checkout `code`."""
    data = folder / "data"
    fill, is_first = objects.FILL[version.name], version == VERSIONS[0]
    with webhook_receiver() as receiver, old_server(code, data, write_tape(folder / "all", version.texts), "1") as server:
        bodies = fill(server, receiver.url)
        # The archive needs a moment: a replay must be the same from pages and from rows.
        wait_until(lambda: is_sealed(data), limit_s=LIMIT_S)
    texts, pauses = ((), ()) if is_first else (TEXTS[:2], (0.0, 0.0))
    tape = write_tape(folder / "last", (*texts, *TEXTS[:1]), (*pauses, PAUSE_S))
    with old_server(code, data, tape, "off") as server:
        if not is_first:
            bodies |= objects.fill_waiting(server)
        bodies["running"] = server.respond(background=True)["id"]
        path = f"responses/{bodies['running']}"
        wait_until(lambda: server.ask("GET", path)["status"] == "in_progress", limit_s=LIMIT_S)
    shutil.rmtree(version.folder, ignore_errors=True)
    version.folder.mkdir()
    dump(data, version.folder / "database.sql.gz")
    shutil.copytree(data / "files", version.folder / "files")
    (version.folder / "bodies.json").write_text(json.dumps(bodies, indent=1) + "\n")


def is_sealed(data: Path) -> bool:
    """Return whether the logs of ended responses are pages."""
    import psycopg

    with psycopg.connect(default_url(data)) as link:
        rows = link.execute("SELECT count(*), (SELECT count(*) FROM responses_app_event) FROM responses_app_logpage").fetchall()
    return bool(rows[0][0]) and not rows[0][1]


def main() -> None:
    """Make the data of the version that the command line names."""
    (version,) = (version for version in VERSIONS if version.name in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="upgrade-") as name:
        code = Path(name) / "code"
        subprocess.run(["git", "worktree", "add", "--detach", code, version.commit], cwd=ROOT, check=True)
        try:
            make(version, code, Path(name))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", code], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
