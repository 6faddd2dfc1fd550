"""Limits on connections that have not logged in yet, in total and per address.

They count from the accept, TLS handshake included, until connection.open, or until their socket is
closed. A connection above a limit is closed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harebell.front.common.turns import Account


class PendingLogins:
    """Connections that are not open yet, by address.

    Attributes:
        limit: the limit in total; 0 for no limit.
        max_per_address: the limit per address; 0 for no limit.
        verifying: numbers of those whose password is being compared.
        account: the work budget of all whose version is not known yet; None before the first.
    """

    def __init__(self) -> None:
        self.limit = 0
        self.max_per_address = 0
        self.verifying: set[int] = set()
        # Kept here: otherwise the account would end with each connection, and be made again.
        self.account: Account | None = None
        self._address_of: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._logged: set[str | None] = set()

    def __len__(self) -> int:
        return len(self._address_of)

    def admits(self, address: str, log: Callable[[str, str], None]) -> bool:
        """True if another connection may be accepted from an address.

        Args:
            address: the address of the peer.
            log: takes a line when the first one is refused.
        """
        if self.limit and len(self._address_of) >= self.limit:
            self._log(None, f"{self.limit} connections have not logged in yet", log)
            return False
        count = self._counts.get(address, 0)
        if self.max_per_address and count >= self.max_per_address:
            where = address or "a local socket"
            self._log(address, f"{count} connections from {where} have not logged in yet", log)
            return False
        return True

    def crowd(self, address: str) -> Iterator[int] | None:
        """Return the connections of which one may have to go for another one from an address.

        Args:
            address: the address of the peer.

        Returns:
            Their numbers, the oldest first; None if the address has less than its limit.
        """
        if not self.max_per_address or self._counts.get(address, 0) < self.max_per_address:
            return None
        return (origin for origin, each in self._address_of.items() if each == address)

    def origins(self) -> Iterator[int]:
        """Return all connections, those of the address with the most of them first."""
        # These go first when there is no room: an address must not push out others by its number.
        crowded = max(self._counts, key=self._counts.__getitem__, default="")
        yield from (origin for origin, each in self._address_of.items() if each == crowded)
        yield from (origin for origin, each in self._address_of.items() if each != crowded)

    def add(self, origin: int, address: str) -> None:
        """Count an accepted connection.

        Args:
            origin: its number.
            address: the address of the peer.
        """
        self._address_of[origin] = address
        self._counts[address] = self._counts.get(address, 0) + 1

    def remove(self, origin: int) -> None:
        """Stop counting a connection that is open or closed; an unknown one is ignored."""
        self.verifying.discard(origin)
        address = self._address_of.pop(origin, None)
        if address is None:
            return
        count = self._counts.pop(address) - 1
        if count:
            self._counts[address] = count
        if self._logged:
            # Not below the limit but below half of it: otherwise each connection that comes and
            # goes at the limit would write a line.
            if 2 * count <= self.max_per_address:
                self._logged.discard(address)
            if 2 * len(self._address_of) <= self.limit:
                self._logged.discard(None)

    def _log(self, what: str | None, text: str, log: Callable[[str, str], None]) -> None:
        if what not in self._logged:
            self._logged.add(what)
            log("warning", f"{text}: more are turned away")
