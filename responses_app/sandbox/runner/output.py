"""Output of a run: two pipes that are read as the code writes, up to a limit."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Mapping

from responses_app.sandbox.base import OnOutput, Stream

CHUNK_BYTES = 65_536
# Beyond the limit a pipe is read every DROP_PAUSE_S, so that endless output costs no processor time.
DROP_PAUSE_S = 0.02


class OutputReader:
    """Reader of the pipes of a container's stdout and stderr. `begin` and `finish` enclose a run."""

    def __init__(self, pipes: Mapping[Stream, int], limit: int) -> None:
        self._pipes, self._limit = dict(pipes), limit
        self._on_output: OnOutput | None = None
        self._left = 0
        self._decoders: dict[Stream, codecs.IncrementalDecoder] = {}
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self.is_truncated = False
        for stream, pipe in self._pipes.items():
            os.set_blocking(pipe, False)
            self._watch(stream)

    def begin(self, on_output: OnOutput) -> None:
        """Drop output of earlier runs and send new output to `on_output`."""
        self._on_output = None
        self._drain()
        self._left, self.is_truncated = self._limit, False
        self._decoders = {stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in self._pipes}
        self._on_output = on_output

    def finish(self) -> None:
        """Read the rest that is in the pipes. Later output is dropped."""
        self._drain()
        for stream, decoder in self._decoders.items():
            self._emit(stream, decoder.decode(b"", final=True))
        self._on_output = None

    def close(self) -> None:
        """Close the pipes."""
        self._is_closed = True
        for pipe in self._pipes.values():
            self._loop.remove_reader(pipe)
            os.close(pipe)
        self._pipes.clear()

    def _watch(self, stream: Stream) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._pipes[stream], self._readable, stream)

    def _readable(self, stream: Stream) -> None:
        data = self._read(stream)
        if data is None:
            return
        self._take(stream, data)
        if not data:
            self._loop.remove_reader(self._pipes[stream])
        elif self._left <= 0 or self._on_output is None:
            self._loop.remove_reader(self._pipes[stream])
            self._loop.call_later(DROP_PAUSE_S, self._watch, stream)

    def _drain(self) -> None:
        """Read at most the capacity of each pipe, as a process in the background may write without end."""
        for stream in self._pipes:
            for _ in range(2):
                data = self._read(stream)
                if not data:
                    break
                self._take(stream, data)

    def _read(self, stream: Stream) -> bytes | None:
        """Return bytes; empty at the end; None if there is nothing at the moment."""
        try:
            return os.read(self._pipes[stream], CHUNK_BYTES)
        except BlockingIOError:
            return None

    def _take(self, stream: Stream, data: bytes) -> None:
        if self._on_output is None:
            return
        self.is_truncated = self.is_truncated or len(data) > self._left
        data, self._left = data[: max(self._left, 0)], self._left - len(data)
        self._emit(stream, self._decoders[stream].decode(data))

    def _emit(self, stream: Stream, text: str) -> None:
        if text and self._on_output is not None:
            self._on_output(stream, text)
