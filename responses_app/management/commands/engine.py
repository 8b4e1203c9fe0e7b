"""`manage.py engine`: runs vLLM as an engine worker, which web processes reach by URL."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from responses_app.installation.data_dir import ROOT, SERVE
from responses_app.server.engine_worker.program import declare


class Command(BaseCommand):
    """Command `engine`."""

    help = (
        "Run one model in vLLM, and start it again whenever it dies. Prints the engine URL for "
        f"{SERVE} --engine, or for RESPONSES_MODELS, when it is ready. Ctrl-C ends it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        declare(parser)

    def run_from_argv(self, argv: list[str]) -> None:
        """Replace this process by the program."""
        if "--help" in argv or "-h" in argv:
            super().run_from_argv(argv)
        # Replace this process by a program without Django.
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RESPONSES_PROG": f"{Path(argv[0]).name} engine"}
        command = [sys.executable, "-P", "-m", "responses_app.server.engine_worker.program", *argv[2:]]
        os.execve(sys.executable, command, environ)  # noqa: S606
