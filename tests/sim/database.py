"""The definitions as the broker keeps them, in SQLite, on the simulated disk."""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any
from weakref import WeakSet, finalize

from harebell.base.ports import Definitions
from harebell.store.definitions import SqliteDefinitions, open_definitions
from harebell.wire.v09.fields import decode_table, encode_table
from tests.sim import vfs
from tests.sim.disk import Random, SimDisk


def encode(table: Mapping[str, Any]) -> bytes:
    """A table of arguments as octets."""
    return encode_table(dict(table))


def decode(octets: bytes) -> Mapping[str, Any]:
    """The way back."""
    return decode_table(octets)[0]


class Database(Definitions):
    """What is declared, in the broker's own database.

    Args:
        disk: where the database is, or is made.
        synced: whether a transaction waits for the disk.
    """

    def __init__(self, disk: SimDisk, *, synced: bool = True) -> None:
        self.disk = disk
        self._dies = finalize(self, vfs.abandon, disk)
        vfs.seed(disk.operations + len(disk.paths()))
        with vfs.guard(disk):
            self._real: SqliteDefinitions = open_definitions(
                vfs.mount(disk), disk, encode, decode, synced=synced, vfs=vfs.NAME
            )
        _open.add(self)

    @property
    def gathered(self) -> bool:
        """Whether there are changes for the next transaction."""
        return self._real.gathered

    def check(self, thing: str, table: Mapping[str, Any]) -> int:
        """Say how large a table is, or refuse it."""
        return self._real.check(thing, table)

    def whole(self) -> AbstractContextManager[None]:
        """A block whose changes are all gathered, or none of them."""
        return self._real.whole()

    def put(self, kind: str, key: tuple[str, ...], fields: Mapping[str, Any]) -> None:
        """Add a definition to the next transaction."""
        self._real.put(kind, key, fields)

    def drop(self, kind: str, key: tuple[str, ...]) -> None:
        """Remove a definition with the next transaction."""
        self._real.drop(kind, key)

    def load(self, kind: str) -> Iterable[tuple[tuple[str, ...], Mapping[str, Any]]]:
        """What is committed."""
        with vfs.guard(self.disk):
            return self._real.load(kind)

    def take(self) -> list[Any]:
        """What gathered, for a batch to write."""
        return self._real.take()

    def write(self, changes: list[Any]) -> None:
        """One transaction. Raises what the disk raises."""
        with vfs.guard(self.disk):
            self._real.write(changes)

    def close(self) -> None:
        """End in good order."""
        with vfs.guard(self.disk):
            self._real.close()
        self._dies.detach()

    def crash(self, disk: SimDisk, rng: Random) -> Database:
        """What a power loss now leaves: it is on the disk that it leaves."""
        return Database(disk)


def _let_go() -> None:
    """SQLite must not call Python when that has ended."""
    for each in list(_open):
        each._dies()
        each._real.detach()


_open: WeakSet[Database] = WeakSet()
atexit.register(_let_go)
