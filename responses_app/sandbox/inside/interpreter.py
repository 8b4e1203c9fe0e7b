"""Python interpreter of a container: runs code, and sends the value, the traceback and the figures over a socket.

Started as `python -I -S interpreter.py DESCRIPTOR LIMITS`. The runner trusts nothing that comes from this process.
"""

from __future__ import annotations

import ast
import builtins
import io
import json
import linecache
import os
import resource
import shutil
import socket
import struct
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType, TracebackType
from typing import Any

# Kind of a message and length of its payload.
HEADER = struct.Struct(">cI")
READY, CODE, STARTUP, FIGURE, RESULT = b"Y", b"C", b"S", b"F", b"R"
MAX_TEXT = 100_000
MAX_RESULT_BYTES = 900_000
# A run has a token, which its answers begin with.
TOKEN_BYTES = 16
NICE = 5
# May appear after the start of the interpreter.
PACKAGES = "/sandbox/packages/site"
PROGRAMS = "/sandbox/inside"
# Font cache of matplotlib, made when the packages were installed.
FONT_CACHE = f"{PACKAGES}/.matplotlib"


class Session:
    """Variables of a container and the number of the last run."""

    def __init__(self) -> None:
        self.module = ModuleType("__main__")
        self.module.__dict__["__builtins__"] = builtins
        self._runs = 0
        self._has_packages = False
        self._process_id = os.getpid()

    def run_startup(self, code: str) -> dict[str, str | None]:
        """Run the code of the operator, which has a separate name in tracebacks."""
        return self._run(code, "<startup>")

    def run(self, code: str) -> dict[str, str | None]:
        """Run `code` and return the repr of the last expression as `value`, and a traceback as `error`."""
        self._runs += 1
        return self._run(code, f"<code {self._runs}>")

    def _find_packages(self) -> None:
        """Let imports find the packages once these are there, and give matplotlib the cache of fonts."""
        if self._has_packages or not os.path.isdir(PACKAGES):
            return
        self._has_packages = True
        sys.path_importer_cache.pop(PACKAGES, None)
        if os.path.isdir(FONT_CACHE):
            try:
                shutil.copytree(FONT_CACHE, os.environ.get("MPLCONFIGDIR", ""), dirs_exist_ok=True)
            except OSError:  # The code may have filled the folder.
                return

    def _run(self, code: str, name: str) -> dict[str, str | None]:
        linecache.cache[name] = (len(code), None, [f"{line}\n" for line in code.split("\n")], name)
        sys.modules["__main__"] = self.module
        self._find_packages()
        try:
            value = self._evaluate(code, name)
            text = None if value is None else _cut(repr(value))
            error = None
        except SystemExit as exit_:
            text, error = None, None if exit_.code in (None, 0) else f"SystemExit: {exit_.code}"
        except BaseException as raised:  # The code may raise anything.
            text, error = None, _cut(_format(raised))
        # A process that the code forked must not answer in place of the interpreter.
        if os.getpid() != self._process_id:
            os._exit(0)
        return {"value": text, "error": error}

    def _evaluate(self, code: str, name: str) -> Any:
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        variables = self.module.__dict__
        exec(compile(tree, name, "exec"), variables)  # noqa: S102 - the purpose of the sandbox
        if not isinstance(last, ast.Expr):
            return None
        value = eval(compile(ast.Expression(last.value), name, "eval"), variables)  # noqa: S307 - the purpose of the sandbox
        if value is not None:
            variables["_"] = value
            _show_picture(value)
        return value


def serve(connection: socket.socket) -> None:
    """Run code from `connection` until the connection is closed."""
    session = Session()
    send(connection, READY, b"")
    while (message := receive(connection)) is not None:
        kind, token, code = message[0], message[1][:TOKEN_BYTES], message[1][TOKEN_BYTES:].decode(errors="replace")
        result = session.run_startup(code) if kind == STARTUP else session.run(code)
        _flush()
        for figure in _figures():
            send(connection, FIGURE, token + figure)
        send(connection, RESULT, token + encode_result(result))


def encode_result(result: Mapping[str, str | None]) -> bytes:
    """Return the result as JSON within the limit of the runner, whatever characters the texts consist of."""
    data = json.dumps(result).encode()
    if len(data) <= MAX_RESULT_BYTES:
        return data
    return json.dumps({name: text and _cut(text, MAX_TEXT // 4) for name, text in result.items()}).encode()


def send(connection: socket.socket, kind: bytes, payload: bytes) -> None:
    """Send a message."""
    connection.sendall(HEADER.pack(kind, len(payload)) + payload)


def receive(connection: socket.socket) -> tuple[bytes, bytes] | None:
    """Receive a message; None at the end of the connection."""
    header = _receive_exactly(connection, HEADER.size)
    if len(header) < HEADER.size:
        return None
    kind, length = HEADER.unpack(header)
    return kind, _receive_exactly(connection, length)


def prepare(limits: Mapping[str, int]) -> None:
    """Set the resource limits, which are named as in the module resource, and the paths of imports."""
    lower_priority()
    for name, value in limits.items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (bound, bound))
    sys.path[:0] = ["", PROGRAMS, PACKAGES]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="replace")
    builtins.__dict__.update(exit=sys.exit, quit=sys.exit)


def lower_priority() -> None:
    """Let other programs of the machine go first. The runner sets what code could undo."""
    os.nice(NICE)


def _receive_exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = connection.recv(min(length - len(data), 1 << 20))
        if not part:
            break
        data += part
    return bytes(data)


def _format(error: BaseException) -> str:
    """Format a traceback without the frames of this file."""
    frames: TracebackType | None = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip("\n")


def _cut(text: str, limit: int = MAX_TEXT) -> str:
    """Drop the middle of a long text."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - limit} characters left out …\n{text[-half:]}"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: S112 - the code may have closed or replaced the stream
            continue


def _figures() -> list[bytes]:
    """Return the figures that were shown or left open, as PNG."""
    try:
        if "figures" in sys.modules:
            import_module("figures").show()
    except BaseException:
        traceback.print_exc()
        _flush()
    try:
        return [image for image in import_module("pictures").take() if isinstance(image, bytes)]
    except BaseException:  # The code can replace every module.
        return []


def _show_picture(value: object) -> None:
    """Show a value that has a picture, such as an image of Pillow. Matplotlib's figures are shown anyway."""
    make = getattr(type(value), "_repr_png_", None)
    if make is not None:
        import_module("pictures").add(make(value))


if __name__ == "__main__":
    prepare(json.loads(sys.argv[2]))
    with socket.socket(fileno=int(sys.argv[1])) as control:
        control.set_inheritable(False)
        sys.argv = [""]
        serve(control)
