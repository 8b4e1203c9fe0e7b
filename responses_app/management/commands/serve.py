"""`manage.py serve`: the same as bin/serve, without its virtual environment."""

from __future__ import annotations

import os
import sys

from django.core.management.base import BaseCommand, CommandParser

from responses_app.local.data_dir import ROOT
from responses_app.server.cli.args import EPILOG, declare


class Command(BaseCommand):
    help = "Serve the Responses API, with Postgres and engines of its own unless told otherwise."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = EPILOG
        declare(parser)

    def run_from_argv(self, argv: list[str]) -> None:
        if "--help" in argv or "-h" in argv:
            super().run_from_argv(argv)
        # The server must choose its event loop before Django is loaded, and here it is loaded: begin again.
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RESPONSES_PROG": "manage.py serve"}
        os.execve(sys.executable, [sys.executable, "-m", "responses_app.server", *argv[2:]], environ)  # noqa: S606
