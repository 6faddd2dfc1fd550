"""Count logins, by protocol, and by address and user of the most recent ones."""

from __future__ import annotations

from typing import Any

from harebell.base.share import FairCache
from harebell.front.limits import LOGIN_SOURCES


class _Counts:
    """Logins that succeeded and failed."""

    __slots__ = ("failed", "succeeded")

    def __init__(self) -> None:
        self.failed = 0
        self.succeeded = 0

    def count(self, *, succeeded: bool) -> None:
        """Count one login."""
        if succeeded:
            self.succeeded += 1
        else:
            self.failed += 1

    def row(self) -> dict[str, Any]:
        """Return the counts with the names of RabbitMQ."""
        return {
            "auth_attempts": self.succeeded + self.failed,
            "auth_attempts_failed": self.failed,
            "auth_attempts_succeeded": self.succeeded,
        }


class LoginAttempts:
    """Counts logins."""

    def __init__(self) -> None:
        self._protocols: dict[str, _Counts] = {}
        self._sources: FairCache[tuple[str, str, str], _Counts] = FairCache(LOGIN_SOURCES)

    def count(self, protocol: str, address: str, user: str, *, succeeded: bool) -> None:
        """Count a login.

        Args:
            protocol: such as "http".
            address: of the client.
            user: the name that it gave.
            succeeded: whether it was accepted.
        """
        if protocol not in self._protocols:
            self._protocols[protocol] = _Counts()
        self._protocols[protocol].count(succeeded=succeeded)
        key = (protocol, address, user)
        counts = self._sources.get(key) or _Counts()
        counts.count(succeeded=succeeded)
        self._sources.put(address, key, counts)

    def clear(self) -> None:
        """Set all counts to 0."""
        self._protocols.clear()
        self._sources.clear()

    def by_protocol(self) -> list[dict[str, Any]]:
        """Return a row for each protocol."""
        return [
            {"protocol": protocol, **counts.row()}
            for protocol, counts in sorted(self._protocols.items())
        ]

    def by_source(self) -> list[dict[str, Any]]:
        """Return a row for each of the most recent addresses and users."""
        return [
            {"remote_address": address, "username": user, "protocol": protocol, **counts.row()}
            for (protocol, address, user), counts in self._sources.items()
        ]
