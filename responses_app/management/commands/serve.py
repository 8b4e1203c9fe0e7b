"""`manage.py serve`: runs the server as `bin/serve` does, in the current virtual environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from responses_app.installation.data_dir import ROOT
from responses_app.server.cli.args import EPILOG, declare
from responses_app.store.database_problems import is_hosted

# The programs behind the command read project.settings, and may start a Postgres.
HOSTED = (
    "serve: this command runs the project of the server alone. Serve a project of your own by its ASGI application, "
    "such as: uvicorn mysite.asgi:application --port 8000"
)


class Command(BaseCommand):
    """Command `serve`."""

    help = "Serve the Responses API, with Postgres and engines of its own by default."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.epilog = EPILOG
        declare(parser)

    def run_from_argv(self, argv: list[str]) -> None:
        """Replace this process by the program."""
        if "--help" in argv or "-h" in argv:
            super().run_from_argv(argv)
        if is_hosted():
            sys.exit(HOSTED)
        # The server chooses its event loop before Django is loaded, so this process is replaced.
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RESPONSES_PROG": f"{Path(argv[0]).name} serve"}
        os.execve(sys.executable, [sys.executable, "-P", "-m", "responses_app.server", *argv[2:]], environ)  # noqa: S606
