"""Single run of a module in the sandbox: sets the limits, then runs the module as the program.

Started as `python -I once.py LIMITS CODE MODULE ARGUMENTS...`.
"""

from __future__ import annotations

import json
import os
import resource
import runpy
import sys
from contextlib import suppress

NICE = 5


def main(limits: str, code: str, module: str, *arguments: str) -> None:
    """Set the `limits`, named as in the module resource, and run `module` with `code` as the first folder of imports."""
    lower_priority()
    for name, value in json.loads(limits).items():
        resource.setrlimit(getattr(resource, name), (value, value))
    sys.path.insert(0, code)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def lower_priority() -> None:
    """Let other programs of the machine go first, and be the first to end when memory is short."""
    os.nice(NICE)
    # A session has a priority of its own, which the priority of a process does not change.
    for file, value in (("/proc/self/autogroup", NICE), ("/proc/self/oom_score_adj", 1000)):
        with suppress(OSError), open(file, "w") as out:
            out.write(str(value))


if __name__ == "__main__":
    main(*sys.argv[1:])
