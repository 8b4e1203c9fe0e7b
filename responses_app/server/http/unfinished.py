"""Memory accounting: bytes of request bodies and WebSocket messages that have begun and have not come to their end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from responses_app.errors import ApiError, RateLimited, ServiceUnavailable
from responses_app.local.transport_limits import MIB

# Bodies of clients that need no key, in all and of one address: these shares of what one key may hold.
KEYLESS_SHARE, ADDRESS_SHARE = 1, 8
RETRY_AFTER_S = 5

PROCESS, KEYLESS = "process", "keyless"


@dataclass(frozen=True, slots=True)
class Level:
    """One total with its limit in bytes, and the name under which messages call it."""

    name: str
    limit: int
    holder: str


class Full(Exception):
    """A total would be over its limit."""

    def __init__(self, level: Level) -> None:
        self.level = level
        super().__init__(
            f"The unfinished request bodies and WebSocket messages of {level.holder} hold {level.limit // MIB} MiB, "
            "which is the limit. Try again when some of them have ended."
        )

    @property
    def answer(self) -> ApiError:
        """The error of the API: 503 where the whole process is full, 429 where one client is."""
        kind = ServiceUnavailable if self.level.name == PROCESS else RateLimited
        return kind(str(self), retry_after=RETRY_AFTER_S)


@dataclass(slots=True)
class Charge:
    """The bytes of one body or message, counted in each of its levels."""

    _totals: Counter[str]
    _levels: Sequence[Level]
    size: int = 0

    def add(self, size: int) -> None:
        """Count so many bytes more. Raises Full, and then counts nothing."""
        for level in self._levels:
            if self._totals[level.name] + size > level.limit:
                raise Full(level)
        for level in self._levels:
            self._totals[level.name] += size
        self.size += size

    def release(self) -> None:
        """Count none of the bytes any more. A second call does nothing."""
        for level in self._levels:
            self._totals[level.name] -= self.size
            if not self._totals[level.name]:
                del self._totals[level.name]
        self.size = 0


@dataclass(slots=True)
class Budget:
    """The totals of one process: at most `process` bytes, and `each` of them of one key."""

    process: int
    each: int
    totals: Counter[str] = field(default_factory=Counter)

    def of_key(self, account: str) -> Charge:
        """Open a charge for a client whose key was found."""
        return Charge(self.totals, (self._whole, Level(f"key {account}", self.each, "this key")))

    def of_address(self, host: str) -> Charge:
        """Open a charge for a client that needs no key."""
        keyless = Level(KEYLESS, self.each // KEYLESS_SHARE, "clients without a key")
        address = Level(f"address {host}", self.each // ADDRESS_SHARE, "your address")
        return Charge(self.totals, (self._whole, keyless, address))

    @property
    def _whole(self) -> Level:
        return Level(PROCESS, self.process, "all clients")
