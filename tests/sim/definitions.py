"""Definitions on the simulated disk: a transaction is there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harebell.base.ports import Definitions
from tests.sim.disk import Random, SimDisk

Key = tuple[str, ...]
Change = tuple[str, Key, "dict[str, Any] | None"]
Tables = dict[str, dict[Key, dict[str, Any]]]

PATH = "definitions"


def _applied(tables: Tables, changes: list[Change]) -> Tables:
    found = {kind: dict(rows) for kind, rows in tables.items()}
    for kind, key, fields in changes:
        rows = found.setdefault(kind, {})
        if fields is None:
            rows.pop(key, None)
        else:
            rows[key] = fields
    return found


class SimDefinitions(Definitions):
    """What is declared, as the last committed transaction left it.

    Args:
        disk: transactions are operations of this disk: they count, fail, and meet power cuts.
        tables: what there is at first.
    """

    def __init__(self, disk: SimDisk, tables: Tables | None = None) -> None:
        self._disk = disk
        self._tables: Tables = tables or {}
        self._writing: list[Change] = []
        self._gathered: list[Change] = []

    @property
    def gathered(self) -> bool:
        """Whether there are changes for the next transaction."""
        return bool(self._gathered)

    def check(self, thing: str, table: Mapping[str, Any]) -> int:
        """Take every table: nothing is encoded."""
        return 0

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Gather all changes of a block, or none of them if it raises."""
        before = len(self._gathered)
        try:
            yield
        except BaseException:
            del self._gathered[before:]
            raise

    def put(self, kind: str, key: Key, fields: Mapping[str, Any]) -> None:
        """Add a definition to the next transaction."""
        self._gathered.append((kind, key, dict(fields)))

    def drop(self, kind: str, key: Key) -> None:
        """Remove a definition with the next transaction."""
        self._gathered.append((kind, key, None))

    def load(self, kind: str) -> Iterable[tuple[Key, Mapping[str, Any]]]:
        """What is committed."""
        return list(self._tables.get(kind, {}).items())

    def take(self) -> list[Change]:
        """What gathered, for a batch to write."""
        taken, self._gathered = self._gathered, []
        return taken

    def write(self, changes: list[Change]) -> None:
        """One transaction: it counts when this returns. Raises what the disk raises."""
        self._disk.step("transaction", PATH)
        self._writing = changes
        # The disk is at work: a power loss finds the transaction whole, or not at all.
        self._disk.did()
        self._tables = _applied(self._tables, changes)
        self._writing = []
        self._disk.did()

    def crash(self, disk: SimDisk, rng: Random) -> SimDefinitions:
        """What a power loss now leaves, on the disk that it leaves."""
        survives = self._writing and rng.random() < 0.5
        tables = _applied(self._tables, self._writing if survives else [])
        return SimDefinitions(disk, tables)
