"""What commands need to know of the cluster: the part of `ClusterDirectory` that they use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harebell.server.cluster.stores import ClusterAddress


class StoreDirectory(Protocol):
    """Where the stores of a cluster are, and which vhosts live in them.

    Attributes:
        number: the store of this process.
        stores: how many there are; the first one has the number 1.
        secret: what the brokers of the cluster know each other by.
    """

    number: int
    stores: int
    secret: bytes

    def store_of(self, vhost: str) -> int | None:
        """Return the store that a vhost lives in; None if there is no such vhost."""

    def address_of(self, store: int) -> ClusterAddress | None:
        """Return where the owner of a store is reached; None while it has none."""

    async def place(self, vhost: str, wanted: int | None = None) -> int:
        """Return the store of a vhost, which is `wanted` or chosen if the vhost is a new one."""

    async def forget(self, vhost: str) -> None:
        """Remove a vhost that was deleted."""
