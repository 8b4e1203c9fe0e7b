"""A limit on the tokens of one prompt, checked while it is rendered; also the way to stop rendering."""

from __future__ import annotations

from threading import Event


class TooLong(ValueError):
    """The prompt has more tokens than its budget. It has at least `least` of them; the rest was not rendered."""

    def __init__(self, least: int) -> None:
        super().__init__(f"at least {least} tokens")
        self.least = least


class Stopped(RuntimeError):
    """Nobody waits for the prompt any more."""


class Budget:
    """At most `most` tokens, None for any number. `stop` may be called from any thread."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.spent = 0
        self._stopped = Event()

    def spend(self, tokens: int) -> None:
        """Count tokens of the prompt. Raises TooLong, Stopped."""
        self.spent += tokens
        self.require(0)

    def require(self, tokens: int) -> None:
        """Check that at least so many more tokens fit; they are not counted. Raises TooLong, Stopped."""
        if self._stopped.is_set():
            raise Stopped("rendering was stopped")
        if self.most is not None and self.spent + tokens > self.most:
            raise TooLong(self.spent + tokens)

    def stop(self) -> None:
        """Have whatever renders with this budget end soon."""
        self._stopped.set()
