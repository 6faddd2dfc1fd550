"""What the stores of a cluster share, wherever it is kept.

    a version      grows with each change
    vhosts         which store each vhost lives in
    users          all of them, as the owner of store 1 has written them
    owners         who owns each store, and where it is reached
    a secret       by which the processes know each other
    a state        of several workers: whether they accept clients

Two places keep it: tables in PostgreSQL (`postgresql/shared_tables.py`), and a file in the data
directory (`workers/shared_file.py`). `cluster_directory.py` follows either.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

CLUSTER_SCHEME = "cluster"
"""The key of the cluster port among the addresses of an owner."""


class OwnerRow(NamedTuple):
    """The owner of a store.

    Args:
        epoch: of its claim.
        broker: its name.
        addresses: where it is reached, by scheme; empty while it does not serve.
        version: of what is shared, as far as it has taken it over.
        load: the share of a core that it uses.
    """

    epoch: int
    broker: str
    addresses: dict[str, str]
    version: int
    load: float

    @property
    def serves(self) -> bool:
        """Whether it serves clients."""
        return bool(self.addresses)


class Shared(Protocol):
    """Statements about what is shared; each takes a connection that `connect` has given.

    They raise what `errors` names.

    Attributes:
        stores: how many stores there are.
        patience: seconds after which an owner that does not answer has lost its store.
    """

    stores: int
    patience: float

    @property
    def errors(self) -> type[Exception]:
        """Return what is raised when it is away, or refuses."""

    def connect(self) -> AbstractContextManager[Any]:
        """Return a connection that commits each statement, and is closed at the end of a block.

        Raises:
            StoreError: it cannot be used, in a sentence for the user.
        """

    def reason(self, error: Exception) -> str:
        """Return why it cannot be used, for people."""

    def prepare(self, link: Any) -> None:
        """Make what is missing, and have this connection woken by changes."""

    def wait(self, link: Any, seconds: float) -> None:
        """Wait until something changes, at most so many seconds."""

    def secret(self, link: Any) -> bytes:
        """Return what the processes of the cluster know each other by."""

    def version(self, link: Any) -> int:
        """Return the version."""

    def owners(self, link: Any) -> dict[int, OwnerRow]:
        """Return the owners of the stores that have one, by number."""

    def owner_beyond(self, link: Any) -> tuple[str, int] | None:
        """Return the owner of the store after the last one, and its beat; None if it has none."""

    def vhosts(self, link: Any) -> dict[str, int]:
        """Return the stores of all vhosts."""

    def users(self, link: Any) -> str:
        """Return the users, as the owner of store 1 has written them."""

    def service(self, link: Any) -> str:
        """Return whether workers accept clients: RUNNING, SUSPENDED or STOPPED."""

    def write_service(self, link: Any, state: str) -> None:
        """Change whether workers accept clients."""

    def place(self, link: Any, vhost: str, store: int) -> int:
        """Write down where a vhost lives, unless that is known; return the number of its store."""

    def register(self, link: Any, store: int, present: set[str]) -> None:
        """Write down which vhosts a store has: those that are present, and no others."""

    def forget(self, link: Any, vhost: str) -> None:
        """Remove a vhost that was deleted."""

    def write_users(self, link: Any, users: str, epoch: int) -> bool:
        """Replace the users; False if store 1 has another owner than that of the epoch now."""

    def acknowledge(self, link: Any, store: int, epoch: int, version: int, load: float) -> None:
        """Write down which version the owner of a store has taken over, and its load."""


class Member(Protocol):
    """The owner of a store in a cluster.

    Attributes:
        number: of its store.
        node: the name of the broker.
    """

    number: int
    node: str

    @property
    def socket(self) -> Path | None:
        """Return the Unix socket that is its cluster port; None for a TCP port."""

    def shared(self) -> Shared:
        """Return what the stores share."""

    def claim(self) -> int:
        """Return the epoch of its claim, which it makes if it has none; may wait for a disk.

        Raises:
            StoreError: what is shared cannot be used.
        """

    def publish(self, addresses: dict[str, str]) -> None:
        """Let the other owners know where this one is reached, by scheme.

        Raises:
            StoreError: what is shared cannot be used.
        """

    def nodes(self) -> list[dict[str, Any]]:
        """Return the brokers of the store, as `harebell cluster status` shows them."""
