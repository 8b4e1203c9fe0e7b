"""Command line of the project: `manage.py` in a checkout, and the program `verbatim` of an installed package."""

from __future__ import annotations

import os
import sys


def main(argv: list[str] | None = None) -> None:
    """Run a command of Django or of this server. Exit with a sentence for wrong settings and for a database that is away."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    argv = sys.argv if argv is None else argv
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(argv)
    except ImproperlyConfigured as error:
        _exit(argv, str(error))
    except OperationalError as error:
        _exit(argv, f"the database does not answer: {error}".rstrip())


def _exit(argv: list[str], sentence: str) -> None:
    if "--traceback" in argv:
        raise
    sys.exit(f"{os.path.basename(argv[0])}: {sentence}")
