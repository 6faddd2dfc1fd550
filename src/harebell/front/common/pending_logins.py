"""Limits on connections that have not logged in yet, in total and per address.

They count from the accept, TLS handshake included, until connection.open, or until their socket is
closed. A connection above a limit is closed at once.
"""

from __future__ import annotations

from collections.abc import Callable


class PendingLogins:
    """Connections that are not open yet, by address.

    Attributes:
        limit: the limit in total; 0 for no limit.
        max_per_address: the limit per address; 0 for no limit.
        verifying: numbers of those whose password is being compared.
    """

    def __init__(self) -> None:
        self.limit = 0
        self.max_per_address = 0
        self.verifying: set[int] = set()
        self._address_of: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._logged: set[str | None] = set()

    def __len__(self) -> int:
        return len(self._address_of)

    def admits(self, address: str, journal: Callable[[str, str], None]) -> bool:
        """True if another connection may be accepted from an address.

        Args:
            address: the address of the peer.
            journal: takes a line when the first one is refused.
        """
        if self.limit and len(self._address_of) >= self.limit:
            self._log(None, f"{self.limit} connections have not logged in yet", journal)
            return False
        count = self._counts.get(address, 0)
        if self.max_per_address and count >= self.max_per_address:
            where = address or "a local socket"
            self._log(address, f"{count} connections from {where} have not logged in yet", journal)
            return False
        return True

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
            if 2 * count <= self.max_per_address:
                self._logged.discard(address)
            if 2 * len(self._address_of) <= self.limit:
                self._logged.discard(None)

    def _log(self, what: str | None, text: str, journal: Callable[[str, str], None]) -> None:
        if what not in self._logged:
            self._logged.add(what)
            journal("warning", f"{text}: more are turned away")
