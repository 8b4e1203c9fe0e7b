"""Messages for modules that a program of this installation cannot import."""

from __future__ import annotations

import os
import sys

from responses_app.installation.data_dir import IS_CHECKOUT, PROGRAM, SERVE

OWN = ("project", "responses_app")


def missing_module_problem(error: ModuleNotFoundError) -> str | None:
    """Return the message for settings of another project, or for a Python without the packages of this checkout. None for others."""
    name = (error.name or "").partition(".")[0]
    if not name or name in OWN:
        return None
    module = os.environ.get("DJANGO_SETTINGS_MODULE", "")
    if name == module.partition(".")[0]:
        return f"the settings module {module} cannot be imported ({error}): unset DJANGO_SETTINGS_MODULE"
    if not IS_CHECKOUT:
        return None
    return f"{sys.executable} has no module {name}: use the Python of the virtual environment that {SERVE} makes, {PROGRAM}"
