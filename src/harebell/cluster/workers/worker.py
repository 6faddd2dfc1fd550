"""The process of one of the stores in a data directory, as the other processes know it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell import __version__
from harebell.base.errors import StoreError
from harebell.cluster.stores import FIRST_STORE, data_dir_of
from harebell.cluster.workers.shared_file import SharedFile

if TYPE_CHECKING:
    from harebell.config import Config

SOCKET = "cluster.sock"
"""The socket in the data directory of a store that the other processes connect to."""


class Worker:
    """The owner of a store; has the methods of `harebell.cluster.shared.Member`.

    The lock of its data directory makes it the only one, so it has no lease.

    Args:
        config: that of this process.
        number: of its store.
        node: the name of the broker.

    Attributes:
        number: as given.
        node: as given.
        socket: where the other processes reach it.
    """

    def __init__(self, config: Config, number: int, node: str) -> None:
        self.number = number
        self.node = node
        own = config.data_dir.absolute()
        self.socket: Path | None = own / SOCKET
        root = data_dir_of(own, number, FIRST_STORE)
        self._shared = SharedFile(root, config.storage_stores, number)
        self._epoch = 0
        self._address = ""

    def shared(self) -> SharedFile:
        """Return what the stores share."""
        return self._shared

    def claim(self) -> int:
        """Note that this process has the lock of its store; return the epoch.

        Those of other stores than 1 wait for the users first: users whom a store knows from its
        earlier run may have been removed since.

        Raises:
            StoreError: the file cannot be used.
        """
        try:
            with self._shared.connect() as link:
                if self.number != FIRST_STORE:
                    self._shared.await_users(link)
                self._epoch = self._shared.claim(link, self.number, self.node)
        except self._shared.errors as error:
            raise StoreError(f"cannot use {self._shared.reason(error)}") from None
        return self._epoch

    def publish(self, addresses: dict[str, str]) -> None:
        """Let the other processes know where this one is reached, by scheme.

        Raises:
            StoreError: the file cannot be used.
        """
        self._address = addresses.get("amqp") or next(iter(addresses.values()), "")
        try:
            with self._shared.connect() as link:
                self._shared.publish(link, self.number, self._epoch, addresses)
        except self._shared.errors as error:
            raise StoreError(f"cannot use {self._shared.reason(error)}") from None

    def nodes(self) -> list[dict[str, Any]]:
        """Return this process, as `harebell cluster status` shows it."""
        return [
            {
                "store": self.number,
                "name": self.node,
                "state": "owner",
                "running": True,
                "address": self._address,
                "version": __version__,
                "behind_bytes": None,
                "behind_seconds": None,
            }
        ]
