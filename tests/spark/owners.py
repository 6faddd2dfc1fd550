"""Two brokers over a store in PostgreSQL, as the chaos harness wants its broker."""

from __future__ import annotations

from pathlib import Path

from tests.postgresql.brokers import StoreBroker, owner_of

_LEASE_MS = 3_000


class Owners:
    """Two brokers that take turns; a context manager.

    Clients are at the address of the first, whoever owns the store: it passes them on when it
    stands by. So it is its relays that break, or itself.

    Args:
        url: of the database.

    Attributes:
        port: of the first.
    """

    def __init__(self, url: str) -> None:
        self._brokers = [StoreBroker(name, url, lease_ms=_LEASE_MS) for name in ("a", "b")]
        self.port = self._brokers[0].port
        self._owner = owner_of(self._brokers)
        self._killed: list[StoreBroker] = []
        self._owned = [self._owner.name]

    @property
    def said(self) -> str:
        """Who has owned the store, in turn."""
        return " ".join(self._owned)

    @property
    def data_dir(self) -> Path:
        """Of the owner; a busy machine may have changed it by itself."""
        return owner_of(self._brokers).data_dir

    @property
    def log(self) -> str:
        """What both have logged."""
        return "".join(each.log for each in self._brokers)

    def kill(self) -> None:
        """kill -9 of the owner, whose data directory is lost too."""
        self._owner.forget()
        self._killed.append(self._owner)

    def restart(self) -> None:
        """Let the other one take over, and start the one that was killed as its standby."""
        for each in self._killed:
            each.start()
        self._killed.clear()
        self._owner = owner_of(self._brokers)
        self._owned.append(self._owner.name)
        self._brokers[0].wait_until_it_answers()

    def remove(self) -> None:
        """End both."""
        for each in self._brokers:
            each.remove()

    def __enter__(self) -> Owners:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
