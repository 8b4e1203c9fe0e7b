"""Token budget of a prompt: checked while rendering, and used to stop rendering."""

from __future__ import annotations

from threading import Event


class TooLong(ValueError):
    """The prompt exceeds the budget: at least `min_tokens` tokens. The rest was not rendered."""

    def __init__(self, min_tokens: int) -> None:
        super().__init__(f"at least {min_tokens} tokens")
        self.min_tokens = min_tokens


class Stopped(RuntimeError):
    """Rendering was stopped because the request was cancelled."""


class Budget:
    """Budget of `limit` tokens, None for no limit. `stop` may be called from any thread."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.spent = 0
        self._stopped = Event()

    def spend(self, tokens: int) -> None:
        """Count tokens of the prompt. Raises TooLong, Stopped."""
        self.spent += tokens
        self.require(0)

    def require(self, tokens: int) -> None:
        """Check that at least `tokens` more tokens fit, without counting. Raises TooLong, Stopped."""
        if self._stopped.is_set():
            raise Stopped("rendering was stopped")
        if self.limit is not None and self.spent + tokens > self.limit:
            raise TooLong(self.spent + tokens)

    def stop(self) -> None:
        """Stop rendering soon, in whichever thread uses the budget."""
        self._stopped.set()
