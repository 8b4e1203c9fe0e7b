"""`manage.py engine`: vLLM as a worker of its own, which any number of web processes reach by its URL."""

from __future__ import annotations

import os
import sys

from django.core.management.base import BaseCommand, CommandParser

from responses_app.local.data_dir import ROOT
from responses_app.server.engine_worker.program import declare


class Command(BaseCommand):
    help = (
        "Run one model in vLLM, and start it again whenever it dies. Prints the engine URL for "
        "bin/serve --engine, or for RESPONSES_MODELS, when it is ready. Ctrl-C ends it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        declare(parser)

    def run_from_argv(self, argv: list[str]) -> None:
        if "--help" in argv or "-h" in argv:
            super().run_from_argv(argv)
        # Without Django, which it does not need, as long as it lives.
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RESPONSES_PROG": "manage.py engine"}
        os.execve(sys.executable, [sys.executable, "-m", "responses_app.server.engine_worker.program", *argv[2:]], environ)  # noqa: S606
