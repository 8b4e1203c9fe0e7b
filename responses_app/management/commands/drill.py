"""`manage.py drill`: a whole system under load, killed part by part, and a proof that nothing was lost."""

from __future__ import annotations

import os
import sys

from django.core.management.base import BaseCommand

from responses_app.local.data_dir import ROOT


class Command(BaseCommand):
    help = "Start a whole system in a folder of its own, kill its parts at random moments, and prove that nothing was lost."

    def run_from_argv(self, argv: list[str]) -> None:
        # Without Django and without the settings of this place: the system under test has its own.
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RESPONSES_PROG": "manage.py drill"}
        os.execve(sys.executable, [sys.executable, "-m", "bench.drill", *argv[2:]], environ)  # noqa: S606
