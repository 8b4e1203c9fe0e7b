"""Command line: read a captured SSE stream and print every rule that the stream breaks.

Exit status: 0 clean, 1 rules are broken, 2 the input is no SSE stream.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from responses_app.protocol.conformance.spec import EVENTS
from responses_app.protocol.conformance.sse import blocks
from responses_app.protocol.conformance.validator import StreamValidator
from responses_app.protocol.conformance.violation import Violation

SHOWN = 200  # characters of an event in a line


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m responses_app.protocol.conformance", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="captured bytes of the stream; standard input if absent")
    parser.add_argument("--profile", choices=sorted(EVENTS), default="openai")
    parser.add_argument("--starting-after", type=int, metavar="N", help="the stream is a resume behind this sequence number")
    return parser.parse_args(argv)


def _read(source: BinaryIO) -> Iterator[bytes]:
    while chunk := source.read(65536):
        yield chunk


def _line(broken: Violation) -> str:
    text = "" if broken.event is None else json.dumps(broken.event, ensure_ascii=False, separators=(",", ":"))
    line = f"{broken}  {text if len(text) <= SHOWN else text[:SHOWN] + '…'}".rstrip()
    # JSON can contain half a surrogate pair, which cannot be printed.
    return line.encode(errors="backslashreplace").decode() + "\n"


def _validate(source: BinaryIO, validator: StreamValidator) -> int:
    count = 0
    for block in blocks(_read(source)):
        for broken in validator.feed_block(block):
            sys.stdout.write(_line(broken))
            count += 1
    if not validator.events:
        sys.stderr.write("no events found: this is not a captured SSE stream\n")
        return 2
    for broken in validator.close():
        sys.stdout.write(_line(broken))
        count += 1
    sys.stdout.write(f"{validator.events} events, {count or 'no'} violations\n")
    return 1 if count else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    options = _options(argv)
    validator = StreamValidator(options.profile, starting_after=options.starting_after)
    try:
        if options.file is None:
            return _validate(sys.stdin.buffer, validator)
        with Path(options.file).open("rb") as source:
            return _validate(source, validator)
    except (OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
