"""The stores of a cluster by number: where each is, and the process of each.

Store 1 has the schema and the data directory of the configuration. Store N has the schema with
`_N` at its end, and the directory `stores/N` in the data directory.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

VARIABLE = "_HAREBELL_STORE"
"""The variable that names the store of a process which the supervisor has started."""
DIRECTORY = "stores"
"""The directory in the data directory with those of the stores after the first."""
PARENT = "_HAREBELL_SUPERVISOR"
"""The variable with the number of the supervisor's process."""
_PR_SET_PDEATHSIG = 1
FIRST_STORE = 1
"""The store with the users, and with the tables that all stores share."""
RUNNING = "running"
"""Clients are accepted."""
SUSPENDED = "suspended"
"""No more clients of AMQP are accepted: `harebell listeners suspend`."""
STOPPED = "stopped"
"""There are no clients: `harebell app stop`."""


class ClusterAddress(NamedTuple):
    """Where the owner of a store is reached by the other processes.

    Args:
        epoch: of its claim.
        address: "host:port" of its cluster port, or the path of its Unix socket.
        fingerprint: SHA-256 of its certificate in hexadecimal; "" for a port without TLS.
    """

    epoch: int
    address: str
    fingerprint: str = ""

    @property
    def is_local(self) -> bool:
        """Whether it is a Unix socket, whose bytes no network sees."""
        return self.address.startswith("/")


class OwnerDirectory(Protocol):
    """Who owns the stores of a cluster, as far as this process knows; every look is cheap."""

    @property
    def secret(self) -> bytes:
        """Return what the brokers of the cluster know each other by."""

    def store_of(self, vhost: str) -> int | None:
        """Return the store that a vhost lives in; None if there is no such vhost."""

    def address_of(self, store: int) -> ClusterAddress | None:
        """Return where the owner of a store is reached; None while it has none."""


class StoreDirectory(OwnerDirectory, Protocol):
    """The stores of a cluster, and which vhosts live in them.

    Attributes:
        number: the store of this process.
        stores: how many there are; the first one has the number 1.
    """

    number: int
    stores: int

    async def place(self, vhost: str, store: int | None = None) -> int:
        """Return the store of a vhost; a new one gets `store`, or one that is chosen."""

    async def forget(self, vhost: str) -> None:
        """Remove a vhost that was deleted."""


def number_of(environ: Mapping[str, str]) -> int:
    """Return the store of this process."""
    return int(environ.get(VARIABLE, FIRST_STORE))


def end_with_supervisor(environ: Mapping[str, str]) -> None:
    """Let the kernel send SIGTERM to this process when its supervisor is gone."""
    parent = environ.get(PARENT)
    if parent is None:
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGTERM)


def schema_of(base: str, number: int) -> str:
    """Return the schema of a store.

    Args:
        base: the schema of the configuration.
        number: of the store.
    """
    return base if number == FIRST_STORE else f"{base}_{number}"


def data_dir_of(own: Path, number: int, other: int) -> Path:
    """Return the data directory of another process of this machine.

    Args:
        own: that of this process.
        number: the store of this process.
        other: the store of that process.
    """
    root = own if number == FIRST_STORE else own.parent.parent
    return root if other == FIRST_STORE else root / DIRECTORY / str(other)
