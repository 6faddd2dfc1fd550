"""Block addresses that keep failing to open a connection (AMQP 0-9-1 4.10.2).

An address with `NEGOTIATION_FAILURES` failures within `NEGOTIATION_WINDOW_SECONDS`, none of whose
connections was opened in between, is not served for `NEGOTIATION_BLOCK_SECONDS`: its connections
are closed at once. This includes loopback. An opened connection resets the count, so that a broken
client cannot lock out a working one at the same address for long.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.share import FairCache
from harebell.front.common.failure_counts import FailureCount, count_failure
from harebell.front.common.password_guesses import PasswordGuesses
from harebell.front.limits import (
    NEGOTIATION_BLOCK_SECONDS,
    NEGOTIATION_FAILURES,
    NEGOTIATION_OFFENDERS,
)


class HandshakeThrottle:
    """Failures of opening connections, by address.

    Attributes:
        guesses: the wrong passwords, which block no address.
    """

    def __init__(self) -> None:
        self.guesses = PasswordGuesses()
        self._records: FairCache[str, FailureCount] = FairCache(NEGOTIATION_OFFENDERS)

    def __len__(self) -> int:
        return len(self._records)

    def failed(self, address: str, now: float, log: Callable[[str, str], None]) -> None:
        """Count a connection that failed before it was open.

        Args:
            address: the address of the peer.
            now: in seconds.
            log: takes a line when the address is blocked by this.
        """
        if count_failure(self._records, address, address, now):
            log(
                "warning",
                f"{address or 'a local socket'} failed to begin a connection "
                f"{NEGOTIATION_FAILURES} times: not served for {NEGOTIATION_BLOCK_SECONDS:g} s",
            )

    def opened(self, address: str, user: str = "") -> None:
        """Forget the failures of an address and user that have opened a connection."""
        if self._records:
            self._records.pop(address)
        self.guesses.opened(address, user)

    def blocked(self, address: str, now: float) -> bool:
        """True if an address is blocked."""
        if not self._records:
            return False
        record = self._records.get(address)
        return record is not None and record.blocked(now)
