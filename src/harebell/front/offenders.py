"""Who keeps failing to begin a connection is turned away for a while (AMQP 0-9-1 4.10.2).

An address that causes `NEGOTIATION_FAILURES` exceptions within `NEGOTIATION_WINDOW_SECONDS`, none
of its connections being opened in between, is not served for `NEGOTIATION_BLOCK_SECONDS`: what it
opens then is closed at once. Loopback is no exception. One that opens a connection is forgiven
everything, so that behind one address a broken client cannot lock a working one out for long.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.limits import (
    NEGOTIATION_BLOCK_SECONDS,
    NEGOTIATION_FAILURES,
    NEGOTIATION_OFFENDERS,
    NEGOTIATION_WINDOW_SECONDS,
)


class _Record:
    """What is known of one address: failures since when, and until when it is blocked."""

    __slots__ = ("blocked_until", "failures", "since")

    def __init__(self, now: float) -> None:
        self.failures = 0
        self.since = now
        self.blocked_until = 0.0


class Offenders:
    """Failures by address, of the addresses that failed last."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def failed(self, address: str, now: float, journal: Callable[[str, str], None]) -> None:
        """A connection from an address ended in an exception before it was open.

        Args:
            address: where it came from.
            now: in seconds.
            journal: takes a line when the address is blocked by this.
        """
        record = self._records.pop(address, None)
        if record is None or now - record.since > NEGOTIATION_WINDOW_SECONDS:
            record = _Record(now)
        self._records[address] = record
        while len(self._records) > NEGOTIATION_OFFENDERS:
            del self._records[next(iter(self._records))]
        record.failures += 1
        if record.failures >= NEGOTIATION_FAILURES and now >= record.blocked_until:
            record.blocked_until = now + NEGOTIATION_BLOCK_SECONDS
            record.failures = 0
            record.since = now
            journal(
                "warning",
                f"{address or 'a local socket'} failed to begin a connection "
                f"{NEGOTIATION_FAILURES} times: not served for {NEGOTIATION_BLOCK_SECONDS:g} s",
            )

    def opened(self, address: str) -> None:
        """An address has opened a connection."""
        if self._records:
            self._records.pop(address, None)

    def blocked(self, address: str, now: float) -> bool:
        """Whether an address is to be turned away."""
        if not self._records:
            return False
        record = self._records.get(address)
        return record is not None and now < record.blocked_until
