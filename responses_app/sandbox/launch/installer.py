"""Process that installs the packages of containers in the background: `python -m … FOLDER`. Failures are tried again."""

from __future__ import annotations

import itertools
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from responses_app.sandbox.installation import InstallationState
from responses_app.sandbox.launch import packages
from responses_app.sandbox.launch.problem import local_problem

logger = logging.getLogger("responses.sandbox")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 900.0
# Requests and the start of the server go first.
NICE = 10


def install(folder: Path, wait: Callable[[float], None] = time.sleep) -> None:
    """Install the packages below `folder`. After a failure the pauses double. Raises OSError."""
    for number in itertools.count():
        packages.write_state(folder, InstallationState("installing", time.time()))
        try:
            packages.install(folder)
        except packages.PackagesMissing as error:
            pause = min(FIRST_PAUSE_S * 2**number, LONGEST_PAUSE_S)
            logger.warning("the packages of containers are not installed; next try in %d seconds: %s", pause, error)
            now = time.time()
            packages.write_state(folder, InstallationState("failed", now, error.step, now + pause))
            wait(pause)
        else:
            return


def main(folder: str) -> None:
    """Install the packages if the machine can run the sandbox."""
    os.nice(NICE)
    if local_problem() is None:
        install(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1])
