"""Containerfile, compose.yaml and the units of systemd: the same commands, run without containers under the same restrictions."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from responses_app.installation.data_dir import ROOT
from responses_app.sandbox.bubblewrap import find_bubblewrap
from responses_app.server.postgres.cluster import SETTINGS
from responses_app.server.postgres.init import INIT
from tests.support import plain_http
from tests.support.server.serve_command import END_LIMIT, EmptyServer, free_port
from tests.support.waiting import wait_until

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
TIMERS = sorted((ROOT / "deploy" / "systemd").glob("*.timer"))
TOKEN = "a-token-of-the-sandbox"
USER = 10001


def compose() -> dict[str, Any]:
    """Read compose.yaml, with the values of .env.example in place of variables."""
    lines = [line.partition("=") for line in (ROOT / ".env.example").read_text().splitlines() if not line.startswith("#")]
    values = {name: value or f"a-long-enough-value-of-{name}" for name, _, value in lines}
    text = re.sub(r"\$\{(\w+)[^}]*\}", lambda match: values[match[1]], (ROOT / "compose.yaml").read_text())
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def instructions() -> list[tuple[str, str]]:
    """List the instructions of the Containerfile as names and arguments, without comments."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(name, arguments) for name, _, arguments in (line.partition(" ") for line in lines) if name]


def image_environment(stage: str) -> dict[str, str]:
    """Return the variables of a stage and of the stage `base`."""
    variables: dict[str, str] = {}
    current = ""
    for name, arguments in instructions():
        if name == "FROM":
            current = arguments.rpartition(" AS ")[2]
        if name == "ENV" and current in ("base", stage):
            variables |= dict(word.split("=", 1) for word in shlex.split(arguments))
    return variables


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[str]:
    """The runner of the service `sandbox` on a free port; yields the URL.

    By `manage.py`: a sandbox sees the packages of one environment, and those of the wheel come from another.
    """
    port, log = free_port(), tmp_path / "sandbox.log"
    arguments = [word.replace("0.0.0.0:8090", f"127.0.0.1:{port}") for word in command_of("sandbox")]
    variables = image_environment("sandbox") | compose()["services"]["sandbox"]["environment"]
    # The packages are part of the image. Without them the runner would install them.
    variables |= {
        "RESPONSES_SANDBOX_TOKEN": TOKEN,
        "RESPONSES_SANDBOX_PACKAGES": "off",
        "RESPONSES_DATA_DIR": str(tmp_path / "sandbox"),
    }
    variables |= {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, ROOT / "manage.py", *arguments], env=variables, stdout=out, stderr=out, cwd="/"
        )

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text()
        return "Serving the sandbox" in log.read_text()

    try:
        wait_until(is_ready, limit_s=60, explain=log.read_text)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def command_of(stage: str) -> list[str]:
    """Return the words of CMD of a stage."""
    text = (ROOT / "Containerfile").read_text().partition(f" AS {stage}\n")[2]
    match = re.search(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert match
    words: list[str] = json.loads(match[1])
    return words


def restricted(environment: Path, data: Path) -> list[str]:
    """Return the words that run a command with a read-only root, as another user, with a data folder and an empty /tmp."""
    readable = [environment.parent.parent, Path(sys.prefix).resolve(), Path(sys.base_prefix), data.parent]
    options = ["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    options += [word for path in readable for word in ("--ro-bind", str(path), str(path))]
    # The image adds the user.
    passwd = data.parent / "passwd"
    passwd.write_text(f"verbatim:x:{USER}:{USER}::{data}:/usr/sbin/nologin\n")
    options += ["--ro-bind", str(passwd), "/etc/passwd", "--bind", str(data), str(data), "--chdir", "/"]
    options += ["--unshare-user", "--uid", str(USER), "--gid", str(USER)]
    return [find_bubblewrap(), *options]


def test_web_command_of_compose_serves_with_a_read_only_root(
    environment: Path, sandbox: str, tape: str, tmp_path: Path
) -> None:
    """Start the service `web`, check its health as the image does, and read a file in the sandbox of the other service."""
    service, data = compose()["services"]["web"], tmp_path / "web" / "data"
    engine = service["command"].index("--engine") + 1
    arguments = [tape if place == engine else word for place, word in enumerate(service["command"])]
    # The model of the hub cannot be downloaded here.
    arguments[arguments.index("--model") + 1] = "demo-chat"
    assert arguments[:3] == ["serve", "--host", "0.0.0.0"]  # noqa: S104
    # The recording is beside the data, where the server can read.
    data.mkdir(parents=True)
    recording = shutil.copy(tape.removeprefix("script://").partition("?")[0], data.parent)
    arguments[engine] = f"script://{recording}?loop=1"
    variables = image_environment("server") | service["environment"]
    variables |= {"HOME": str(data), "RESPONSES_SANDBOX_URL": sandbox, "RESPONSES_SANDBOX_TOKEN": TOKEN}
    variables = {
        name: value
        for name, value in variables.items()
        if name not in ("DATABASE_URL", "PATH", "RESPONSES_DATA_DIR", "HF_HOME")
    }
    with EmptyServer(
        data,
        *("--host", "127.0.0.1"),
        *arguments[3:],
        program=[*restricted(environment, data), str(environment / "bin" / "verbatim"), "serve"],
        PYTHONPATH="",
        **variables,
    ) as server:
        server.ready()
        check = next(json.loads(text.partition("CMD ")[2]) for name, text in instructions() if name == "HEALTHCHECK")
        check = [word.replace(":8000/", f":{server.port}/") for word in check]
        subprocess.run([environment / "bin" / "python", *check[1:]], check=True, timeout=60)
        note = {"type": "input_file", "filename": "note.txt", "file_data": "data:text/plain;base64,SGVsbG8="}
        message = {"role": "user", "content": [note, {"type": "input_text", "text": "Hi"}]}
        answer = server.ask(model="demo-chat", input=[message])
        assert answer.status_code == 200, answer.text
        assert plain_http.get(f"{server.url}/health/ready").json()["status"] == "ready"
        # bubblewrap passes no signals on.
        psutil.Process(server.process.pid).children()[0].terminate()
        assert server.process.wait(END_LIMIT) == 0, server.output


def test_images_run_as_a_user_and_install_nothing_at_a_start() -> None:
    users, words = [text for name, text in instructions() if name == "USER"], dict(instructions())
    assert users == [f"{USER}:{USER}"]
    assert words["ENTRYPOINT"] == '["verbatim"]'
    base = (ROOT / "Containerfile").read_text().partition(" AS base\n")[2]
    assert not re.search(r"\b(pip|uv|apt-get|apk)\b", base)


def test_build_copies_the_files_that_the_installation_reads() -> None:
    checkout = [name for name, _ in instructions()].index("WORKDIR")
    copied = {word for name, text in instructions()[checkout:] if name == "COPY" for word in text.split()}
    read = set(re.findall(r"\$root/([\w.-]+)", (ROOT / "deploy" / "install").read_text()))
    assert read, "deploy/install names its files below $root"
    assert read <= copied
    assert {f"!{name}" for name in read} <= set((ROOT / ".dockerignore").read_text().splitlines())


def test_only_the_proxy_is_published_and_only_the_sandbox_is_unconfined() -> None:
    content = compose()
    services = content["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert [name for name, service in services.items() if "seccomp=unconfined" in service.get("security_opt", [])] == [
        "sandbox"
    ]
    assert {name for name, service in services.items() if not service.get("read_only")} == {"postgres"}
    assert services["sandbox"]["networks"] == ["code"]
    assert {name for name, network in content["networks"].items() if network.get("internal")} == {"front", "database", "code"}
    subnet = content["networks"]["front"]["ipam"]["config"][0]["subnet"]
    assert services["web"]["environment"]["RESPONSES_TRUSTED_PROXIES"] == subnet
    assert not any(key in services["sandbox"]["environment"] for key in ("DATABASE_URL", "SECRET_KEY", "ENGINE_KEY"))


def test_postgres_has_settings_of_the_embedded_one() -> None:
    service = compose()["services"]["postgres"]
    settings = dict(word.split("=") for word in service["command"][2::2])
    assert settings == {name: SETTINGS[name] for name in settings}
    assert {"wal_compression", "max_wal_size", "checkpoint_timeout"} <= settings.keys()
    assert set(service["environment"]["POSTGRES_INITDB_ARGS"].split()) <= set(INIT)
    page = (ROOT / "docs" / "operations" / "postgres.md").read_text()
    assert dict(re.findall(r"ALTER SYSTEM SET (\w+) = '(\w+)';", page)) == settings


def test_versions_are_those_of_pyproject() -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "verbatim" / "Chart.yaml").read_text())
    # The version of a chart is one of SemVer.
    assert (chart["version"], chart["appVersion"]) == (VERSION.replace(".dev", "-dev"), VERSION)
    images = [service["image"] for service in compose()["services"].values() if service["image"].startswith("verbatim")]
    assert {image.partition(":")[2].partition("-")[0] for image in images} == {VERSION}


@pytest.mark.parametrize("unit", [*UNITS, *TIMERS], ids=lambda unit: unit.name)
def test_units_are_accepted_by_systemd(unit: Path, environment: Path, tmp_path: Path) -> None:
    """With the program of the installed wheel in the place of the unit's."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze; on Debian: apt-get install -y systemd")
    folder = tmp_path / "units"
    folder.mkdir()
    for timer in TIMERS:
        shutil.copy(timer, folder)
    for other in UNITS:
        text = other.read_text()
        assert "ExecStart=/opt/verbatim/current/bin/verbatim " in text
        (folder / other.name).write_text(text.replace("/opt/verbatim/current", str(environment)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", folder / unit.name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(folder) not in done.stderr, done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_commands_of_units_are_known_to_the_program(unit: Path, environment: Path) -> None:
    match = re.search(r"^ExecStart=\S+/verbatim (\w+)(.*)$", unit.read_text(), re.MULTILINE)
    assert match
    help_text = run([str(environment / "bin" / "verbatim"), match[1], "--help"])
    assert [option for option in re.findall(r"--[\w-]+", match[2]) if option not in help_text] == []


def test_timer_keeps_ten_dated_backups_with_the_commands_of_its_unit(tmp_path: Path) -> None:
    """Run the commands before and after `backup` as systemd would, in another folder."""
    unit = (ROOT / "deploy" / "systemd" / f"{TIMERS[0].stem}.service").read_text()
    folder = tmp_path / "backups"
    former = [f"2026-01-{day:02}T030000" for day in range(1, 13)]
    for name in [*former, "unfinished"]:
        (folder / name / "files").mkdir(parents=True)
    (folder / "unfinished" / "interrupted").touch()
    commands = re.findall(r"^ExecStart(Pre|Post|)=(.*)$", unit, re.MULTILINE)
    assert [name for name, _ in commands] == ["Pre", "", "Post", "Post"]
    for name, line in commands:
        words = shlex.split(line.replace("/var/backups/verbatim", str(folder)).replace("$$", "$").replace("%%", "%"))
        if not name:
            words = ["mkdir", words[-1]]
        subprocess.run(words, check=True)
    names = sorted(path.name for path in folder.iterdir())
    assert names[:-1] == former[3:]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d{6}", names[-1])
    assert not any((folder / names[-1]).iterdir())


def run(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout
