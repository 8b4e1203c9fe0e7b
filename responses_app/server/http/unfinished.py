"""Memory accounting of unfinished request bodies and WebSocket messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from responses_app.errors import ApiError, RateLimited, ServiceUnavailable
from responses_app.wire.transport_limits import MIB

# Limits of clients without a key, in total and per address, as divisors of the limit of one key.
KEYLESS_SHARE, ADDRESS_SHARE = 1, 8
RETRY_AFTER_S = 5

PROCESS, KEYLESS = "process", "keyless"


@dataclass(frozen=True, slots=True)
class Level:
    """Counter with a limit in bytes, and the name of the limit in error messages."""

    name: str
    limit: int
    holder: str


class Full(Exception):
    """Limit of a counter exceeded."""

    def __init__(self, level: Level) -> None:
        self.level = level
        super().__init__(
            f"The unfinished request bodies and WebSocket messages of {level.holder} hold {level.limit // MIB} MiB, "
            "which is the limit. Try again when some of them have ended."
        )

    @property
    def answer(self) -> ApiError:
        """Return the API error: 503 for the limit of the process, 429 for the limit of a client."""
        kind = ServiceUnavailable if self.level.name == PROCESS else RateLimited
        return kind(str(self), retry_after=RETRY_AFTER_S)


@dataclass(slots=True)
class Charge:
    """Bytes of a body or message, counted in several levels."""

    _totals: Counter[str]
    _levels: Sequence[Level]
    size: int = 0

    def add(self, size: int) -> None:
        """Count `size` more bytes. Raises Full without counting."""
        for level in self._levels:
            if self._totals[level.name] + size > level.limit:
                raise Full(level)
        for level in self._levels:
            self._totals[level.name] += size
        self.size += size

    def release(self) -> None:
        """Release all bytes. Repeated calls do nothing."""
        for level in self._levels:
            self._totals[level.name] -= self.size
            if not self._totals[level.name]:
                del self._totals[level.name]
        self.size = 0


@dataclass(slots=True)
class ByteBudget:
    """Counters of a process: at most `process` bytes in total, and `each` bytes per key."""

    process: int
    each: int
    totals: Counter[str] = field(default_factory=Counter)

    def of_key(self, account: str) -> Charge:
        """Open a charge for a client with a key."""
        return Charge(self.totals, (self._whole, Level(f"key {account}", self.each, "this key")))

    def of_address(self, host: str) -> Charge:
        """Open a charge for a client without a key."""
        keyless = Level(KEYLESS, self.each // KEYLESS_SHARE, "clients without a key")
        address = Level(f"address {host}", self.each // ADDRESS_SHARE, "your address")
        return Charge(self.totals, (self._whole, keyless, address))

    @property
    def _whole(self) -> Level:
        return Level(PROCESS, self.process, "all clients")
