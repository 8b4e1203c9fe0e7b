"""`manage.py sandbox`: runs the runner of the sandbox as a process of its own, or prepares its packages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser

from responses_app.installation.addresses import check_sandbox_url
from responses_app.installation.data_dir import ROOT, data_dir
from responses_app.sandbox.launch import installer, launcher, packages
from responses_app.sandbox.launch.problem import local_problem
from responses_app.server.processes.sandbox_starter import socket_url
from responses_app.tools.sandbox_access import runner_options
from responses_app.utils.json_output import is_json, json_output


class Command(BaseCommand):
    """Command `sandbox`."""

    help = "Run the runner of the sandbox, for servers whose RESPONSES_SANDBOX_URL names its address. Needs no database."
    requires_system_checks: list[str] = []  # noqa: RUF012 (so declared by Django)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument(
            "--listen",
            metavar="ADDRESS",
            help="unix:/path, or http://host:port with RESPONSES_SANDBOX_TOKEN (default: a socket in the data folder)",
        )
        parser.add_argument("--prepare", action="store_true", help="install the packages of the containers, and exit")

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command. With RESPONSES_LOG_FORMAT=json each line is a JSON object, apart from the help."""
        descriptors = () if "--help" in argv or "-h" in argv else (1, 2)
        with json_output(*descriptors):
            super().run_from_argv(argv)

    def handle(self, *_args: Any, listen: str | None, prepare: bool, **_options: Any) -> None:
        """Run the command."""
        folder = data_dir() / packages.FOLDER
        if prepare:
            self._prepare()
            return
        if problem := local_problem():
            raise CommandError(problem)
        address = listen or socket_url(data_dir())
        try:
            check_sandbox_url("--listen", address, settings.RESPONSES_SANDBOX_TOKEN)
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        self.stderr.write(f"Serving the sandbox at {address}; Ctrl-C ends it.")
        command = [sys.executable, "-P", "-m", launcher.__name__, "--folder", str(folder), "--listen", address]
        if settings.RESPONSES_SANDBOX_PACKAGES:
            self._install(folder)
        else:
            command.append("--without-packages")
        options = runner_options()
        _run([*command, "--options", options.to_json()], {**os.environ, **options.environment(), "PYTHONPATH": str(ROOT)})

    def _install(self, folder: Path) -> None:
        """Install the packages in the background. The process ends with the runner, which this process becomes."""
        if packages.is_installed(folder):
            return
        try:
            installer.start(folder)
        except OSError as error:
            self.stderr.write(f"The packages of containers cannot be installed: {error}")
            return
        self.stderr.write(f"Installing {packages.names()} in the background. Code that imports none of these does not wait.")

    def _prepare(self) -> None:
        try:
            place = packages.install(data_dir() / packages.FOLDER)
        except (packages.PackagesMissing, OSError) as error:
            raise CommandError(f"the packages could not be installed: {error}") from error
        self.stdout.write(f"The packages are in {place}.")


def _run(command: list[str], environ: dict[str, str]) -> None:
    """Replace this process by the runner. For output in JSON the process stays, and passes signals on."""
    if not is_json():
        os.execve(sys.executable, command, environ)  # noqa: S606
    process = subprocess.Popen(command, env=environ)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: process.send_signal(number))
    code = process.wait()
    sys.exit(code if code >= 0 else 128 - code)
