"""Block addresses that keep failing to open a connection (AMQP 0-9-1 4.10.2).

An address with `NEGOTIATION_FAILURES` failures within `NEGOTIATION_WINDOW_SECONDS`, none of whose
connections was opened in between, is not served for `NEGOTIATION_BLOCK_SECONDS`: its connections
are closed at once. This includes loopback. An opened connection resets the count, so that a broken
client cannot lock out a working one at the same address for long.

Refused logins are counted separately, by address *and* user, because many clients may share an
address. After as many of them, refusals have no reply, delay or log line; the right password is
always accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from harebell.base.limits import (
    NEGOTIATION_BLOCK_SECONDS,
    NEGOTIATION_FAILURES,
    NEGOTIATION_OFFENDERS,
    NEGOTIATION_WINDOW_SECONDS,
)


class _Record:
    """The failures of one address, and until when it is blocked."""

    __slots__ = ("blocked_until", "failures", "since")

    def __init__(self, now: float) -> None:
        self.failures = 0
        self.since = now
        self.blocked_until = 0.0


class HandshakeThrottle:
    """Failures of opening connections, by address."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}
        self._logins: dict[tuple[str, str], _Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def failed(self, address: str, now: float, journal: Callable[[str, str], None]) -> None:
        """Count a connection that failed before it was open.

        Args:
            address: the address of the peer.
            now: in seconds.
            journal: takes a line when the address is blocked by this.
        """
        if _counted(self._records, address, now):
            journal(
                "warning",
                f"{address or 'a local socket'} failed to begin a connection "
                f"{NEGOTIATION_FAILURES} times: not served for {NEGOTIATION_BLOCK_SECONDS:g} s",
            )

    def refused(
        self, address: str, user: str, now: float, journal: Callable[[str, str], None]
    ) -> bool:
        """Count a refused login; True if there were too many and it gets no reply.

        Args:
            address: the address of the peer.
            user: the user of the login.
            now: in seconds.
            journal: takes a line when there are too many with this one.
        """
        key = (address, user)
        record = self._logins.get(key)
        if record is not None and now < record.blocked_until:
            return True
        if _counted(self._logins, key, now):
            journal(
                "warning",
                f"user '{user}' was refused {NEGOTIATION_FAILURES} times from "
                f"{address or 'a local socket'}: connections "
                "with a wrong password are closed without an answer for "
                f"{NEGOTIATION_BLOCK_SECONDS:g} s, and the right one is taken",
            )
        return False

    def opened(self, address: str, user: str = "") -> None:
        """Forget the failures of an address and user that have opened a connection."""
        if self._records:
            self._records.pop(address, None)
        if self._logins:
            self._logins.pop((address, user), None)

    def blocked(self, address: str, now: float) -> bool:
        """True if an address is blocked."""
        if not self._records:
            return False
        record = self._records.get(address)
        return record is not None and now < record.blocked_until


Key = TypeVar("Key", str, tuple[str, str])


def _counted(records: dict[Key, _Record], key: Key, now: float) -> bool:
    """Count a failure; True if there are too many with this one."""
    record = records.pop(key, None)
    if record is None or now - record.since > NEGOTIATION_WINDOW_SECONDS:
        record = _Record(now)
    records[key] = record
    while len(records) > NEGOTIATION_OFFENDERS:
        del records[next(iter(records))]
    record.failures += 1
    if record.failures < NEGOTIATION_FAILURES or now < record.blocked_until:
        return False
    record.blocked_until = now + NEGOTIATION_BLOCK_SECONDS
    record.failures = 0
    record.since = now
    return True
