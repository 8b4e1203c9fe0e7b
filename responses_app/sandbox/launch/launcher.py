"""Launcher of the runner: opens the socket, leaves root, and becomes the runner's sandbox. Another process installs packages.

Usage: `python -m responses_app.sandbox.launch.launcher --folder FOLDER (--listen ADDRESS | --socket DESCRIPTOR)`.
"""

from __future__ import annotations

import argparse
import logging
import os
import pwd
import socket
import sys
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from responses_app.sandbox import bubblewrap, system
from responses_app.sandbox.launch import delegated_cgroup, packages
from responses_app.sandbox.options import RunnerOptions
from responses_app.utils import unix_socket

logger = logging.getLogger("responses.sandbox")

ROOT = Path(__file__).resolve().parents[3]
RUNNER = "responses_app.sandbox.runner.program"
# Numbers of accounts that no distribution assigns.
ACCOUNTS = range(60_578, 61_184)
# Folder that root covers with a tmpfs in a mount namespace of its own, to show folders to the account.
STAGE = Path("/mnt")


def main(argv: Sequence[str]) -> None:
    """Replace this process by the runner. Raises SystemExit with a message if the runner cannot start."""
    options = _parse(argv)
    try:
        bwrap = bubblewrap.find_bubblewrap()
        listening = _listening_socket(options.listen) if options.listen else socket.socket(fileno=options.socket)
    except (bubblewrap.BubblewrapMissing, OSError) as error:
        raise SystemExit(f"sandbox: {error}") from None
    limits = RunnerOptions.from_json(options.options)
    installed = None if options.without_packages else _packages(options.folder)
    cgroup = delegated_cgroup.prepare()
    if cgroup:
        limits = replace(limits, cgroup=bubblewrap.CGROUP)
    program = [str(listening.fileno()), str(options.ready), limits.to_json()]
    command = [sys.executable, "-P", "-m", RUNNER, *program]
    descriptors = [listening.fileno(), options.ready]
    become(bwrap, folders(installed), command, descriptors, cgroup, options.folder, limits.environment())


def become(
    bwrap: str,
    places: Mapping[str, str],
    command: Sequence[str],
    descriptors: Sequence[int] = (),
    cgroup: str = "",
    installation: Path = ROOT,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Replace this process by `command` in the runner's sandbox, under an account without rights.

    `installation` is the folder of the sandbox, which chooses the account. `variables` are added to the environment.
    """
    for descriptor in descriptors:
        if descriptor >= 0:
            os.set_inheritable(descriptor, True)
    if os.geteuid() == 0:
        sources, places = places, _leave_root(places, cgroup, account(installation))
        bwrap = _moved(bwrap, sources, places)
    environment = {"PATH": os.defpath, "PYTHONPATH": bubblewrap.CODE, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    os.execve(bwrap, bubblewrap.runner_command(bwrap, places, command, cgroup), {**environment, **variables})  # noqa: S606


def folders(installed: Path | None = None) -> dict[str, str]:
    """Return the folders that the runner sees: place inside the sandbox, and folder of this machine."""
    mounted_folders = {
        f"{bubblewrap.CODE}/responses_app": str(ROOT / "responses_app"),
        bubblewrap.INSIDE: str(ROOT / "responses_app" / "sandbox" / "inside"),
    }
    mounted_folders |= {folder: folder for folder in bubblewrap.python_folders()}
    if installed is not None:
        mounted_folders[bubblewrap.INSTALLATION] = str(installed)
    return mounted_folders


def account(installation: Path) -> int:
    """Return the number of an account that no user has, and which differs between installations.

    Processes of the same account may signal each other.
    """
    used = {entry.pw_uid for entry in pwd.getpwall()}
    unused = [number for number in ACCOUNTS if number not in used]
    return unused[zlib.crc32(os.fsencode(installation.resolve())) % len(unused)]


def _leave_root(places: Mapping[str, str], cgroup: str, number: int) -> Mapping[str, str]:
    """Change to the account. Return the folders, which are mounted where the account can enter, if the machine allows mounts."""
    with suppress(OSError):
        places = _stage(places)
    delegated_cgroup.give(cgroup, number)
    os.setgroups([])
    os.setgid(number)
    os.setuid(number)
    return places


def _stage(places: Mapping[str, str]) -> Mapping[str, str]:
    system.unshare_mounts()
    # Descriptors stay valid when the stage covers a folder.
    sources = {place: os.open(source, os.O_PATH) for place, source in places.items()}
    system.mount_tmpfs(STAGE, "mode=755")
    staged = {}
    for number, (place, descriptor) in enumerate(sources.items()):
        folder = STAGE / str(number)
        folder.mkdir()
        system.bind(Path(f"/proc/self/fd/{descriptor}"), folder)
        os.close(descriptor)
        staged[place] = str(folder)
    return staged


def _moved(program: str, sources: Mapping[str, str], staged: Mapping[str, str]) -> str:
    """Return the path of a program that may be in any of the folders that were mounted on the stage."""
    for place, source in sources.items():
        if program.startswith(f"{source}/"):
            return staged[place] + program.removeprefix(source)
    return program


def _packages(folder: Path) -> Path | None:
    try:
        return packages.prepared_folder(folder)
    except OSError as error:
        logger.warning("containers have no packages beside the standard library: %s", error)
        return None


def _listening_socket(address: str) -> socket.socket:
    """Return a listening socket. A Unix socket gets mode 0600."""
    if address.startswith("unix:"):
        return unix_socket.listen(Path(address.removeprefix("unix:")))
    parts = urlsplit(address)
    family = socket.AF_INET6 if ":" in (parts.hostname or "") else socket.AF_INET
    return socket.create_server((parts.hostname or "127.0.0.1", parts.port or 8090), family=family)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sandbox")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--listen")
    parser.add_argument("--socket", type=int, default=-1)
    parser.add_argument("--ready", type=int, default=-1)
    parser.add_argument("--options", default="{}")
    parser.add_argument("--without-packages", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main(sys.argv[1:])
