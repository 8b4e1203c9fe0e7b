"""Kill processes of a server during code, uploads and ingestions: `python -m tests.chaos.hosted_tools`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.findings import Findings
from tests.chaos.hosted_tools.drill import CASES, CODES, Drill
from tests.chaos.hosted_tools.target import ServerTarget
from tests.chaos.options import Options
from tests.chaos.report import report


def run(folder: Path, findings: Findings, numbers: Sequence[int], megabytes: int) -> None:
    """Start the server, run the cases with these numbers, and end the server."""
    target = ServerTarget(folder, CODES)
    try:
        target.start()
        drill = Drill(target, findings, megabytes)
        for number in numbers:
            drill.run(*CASES[number])
            sys.stdout.write(f"{findings.rows[-1][0]}: {findings.rows[-1][1]}; {len(findings.wrong)} contradictions\n")
            sys.stdout.flush()
        drill.end()
    finally:
        target.server.end()


def main(argv: Sequence[str]) -> int:
    """Run the drill and print its table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.hosted_tools", description=__doc__)
    parser.add_argument("--cases", type=int, nargs="*", default=range(len(CASES)), help=f"numbers below {len(CASES)}")
    parser.add_argument("--megabytes", type=int, default=200, help="size of an upload (default: %(default)s)")
    options, findings = parser.parse_args(argv), Findings()
    folder = Path(tempfile.mkdtemp(prefix="hosted-tools-"))
    folder.chmod(0o755)
    run(folder, findings, options.cases, options.megabytes)
    print(report(Options(engine="script", web=1, responses=len(options.cases)), findings))
    if findings.wrong:
        print(f"\nThe data of this run is in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
