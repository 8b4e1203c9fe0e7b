"""Command line of the project: `manage.py` in a checkout, and the program `verbatim` of an installed package."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

from responses_app.installation.missing_modules import missing_module_problem

# Commands that read the data folder alone; `restore` writes the key of the backup.
MAKE_NO_KEY: Final = ("check", "diffsettings", "doctor", "help", "restore")


def main(argv: list[str] | None = None) -> None:
    """Run a command of Django or of this server. Exit with a sentence for wrong settings, an unusable database and another Python."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    argv = sys.argv if argv is None else argv
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
        from django.db import DatabaseError

        execute_from_command_line(argv)
        sys.stdout.flush()
    except ModuleNotFoundError as error:
        if (problem := missing_module_problem(error)) is None:
            raise
        _exit(argv, problem)
    except ImproperlyConfigured as error:
        _exit(argv, str(error))
    except BrokenPipeError:
        # The reader has ended, as `head` does. At its exit Python would write what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except DatabaseError as error:
        from responses_app.store.database_problems import describe_database_error

        if (problem := describe_database_error(error)) is None:
            raise
        _exit(argv, problem)


def makes_key(argv: Sequence[str]) -> bool:
    """Return whether a missing SECRET_KEY is stored in the data folder."""
    return not (argv[1:] and argv[1] in MAKE_NO_KEY) and not {"-h", "--help", "--version"} & {*argv}


def _exit(argv: list[str], sentence: str) -> None:
    if "--traceback" in argv:
        raise
    sys.exit(f"{os.path.basename(argv[0])}: {sentence}")
