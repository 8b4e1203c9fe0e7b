"""The wheel: `uv build`, an installation in a virtual environment of its own, and `verbatim serve` in a folder without the checkout."""

from __future__ import annotations

import re
import subprocess
import tomllib
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

from responses_app.installation.data_dir import ROOT
from tests.support import plain_http
from tests.support.server.serve_command import Server


def tracked(*folders: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *folders], cwd=ROOT, capture_output=True, check=True, text=True
    )
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}


def test_the_wheel_has_the_files_of_the_server_and_no_others(wheel: Path) -> None:
    expected = tracked("responses_app", "project")
    expected |= {f"responses_app/{name}" for name in tracked("templates")}
    expected |= {name.replace("docs", "responses_app", 1) for name in tracked("docs/examples")}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == expected


def test_the_metadata_has_the_pins_of_pyproject(environment: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    distribution = PathDistribution(next(environment.glob("lib/python*/site-packages/verbatim-*.dist-info")))
    assert [re.sub(r"\s", "", text) for text in distribution.requires or [] if "extra ==" not in text] == project[
        "dependencies"
    ]
    assert distribution.version == project["version"]


def test_the_installed_program_serves_in_a_folder_without_the_checkout(environment: Path, tape: str, tmp_path: Path) -> None:
    """With the demo model as the tokenizer, the demo tools, templates, static files and commands."""
    home, program = tmp_path / "home", str(environment / "bin" / "verbatim")
    home.mkdir()
    with Server(
        home / ".local" / "share" / "verbatim",
        *("--model", "tape=demo-chat", "--engine", tape, "--demo-tools"),
        program=["env", "--unset=RESPONSES_DATA_DIR", f"--chdir={tmp_path}", program, "serve"],
        HOME=str(home),
        XDG_DATA_HOME="",
        PYTHONPATH="",
    ) as server:
        assert server.ready().ask().status_code == 200
        page = plain_http.get(server.url, follow_redirects=True)
        assert page.status_code == 200
        style = re.search(r'href="(/static/[^"]+\.css)"', page.text)
        assert style is not None
        assert plain_http.get(f"{server.url}{style[1]}").status_code == 200
        assert f"{program} signin" in server.output
        command = [program, "signin", "--url", server.url]
        done = subprocess.run(command, cwd=tmp_path, env={"HOME": str(home)}, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(f"{server.url}/sign-in/")
        assert plain_http.get(done.stdout.strip(), follow_redirects=True).status_code == 200
        assert server.stop() == 0
