"""The log in memory: records live until they are settled, and are counted on the gauge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import Commit, Definitions, Log, Store
from harebell.base.sequence import Sequence
from harebell.store.memory_files import MemoryFiles


class MemoryLog(Log):
    """One queue's records, as objects.

    Args:
        gauge: where the records' octets are counted.
    """

    __slots__ = ("_counts", "_gauge", "_records")

    def __init__(self, gauge: Gauge) -> None:
        super().__init__()
        self._counts: dict[int, int] = {}
        self._gauge = gauge
        self._records = Sequence()

    def append(self, message: Message) -> int:
        """Add a record at the end; returns its position."""
        self._gauge.hold(message)
        return self._records.append(message)

    def read(self, position: int) -> Message | None:
        """The record at a position; None when it was settled."""
        record: Message | None = self._records.get(position)
        return record

    def settle(self, position: int) -> int:
        """Forget the record at a position."""
        record: Message | None = self._records.take(position)
        if record is not None:
            self._counts.pop(position, None)
            self._gauge.let_go(record)
        return 0

    def first(self) -> int:
        """The smallest position that is not settled; `end()` when there is none."""
        return self._records.first()

    def end(self) -> int:
        """The position that the next record will get."""
        return self._records.next

    def settle_range(self, first: int, end: int) -> int:
        """Forget the records from `first` up to, not including, `end`."""
        for position in range(first, end):
            self.settle(position)
        return 0

    def next(self, position: int) -> int:
        """The smallest position from `position` on that is not settled; `end()` without one."""
        end = self._records.next
        while position < end and self._records.get(position) is None:
            position += 1
        return min(position, end)

    def live(self) -> int:
        """How many records there are."""
        return self._records.count

    def reach(self, position: int, end: int, messages: int, octets: int) -> tuple[int, int, int]:
        """How far so many records go, or so many octets of their bodies."""
        reached, count, total = position, 0, 0
        position = self.next(position)
        while position < end and count < messages:
            message = self._records.get(position)
            size = 0 if message is None else len(message.body)
            if 0 <= octets < total + size:
                break
            total += size
            count += 1
            reached = position + 1
            position = self.next(reached)
        return reached, count, total

    def octets(self) -> int:
        """Memory is not counted by log."""
        return 0

    def see(self, position: int) -> int:
        """Nothing outlives the process that could ask."""
        return 0

    def seen(self) -> int:
        """Nothing was there before."""
        return 0

    def count(self, position: int) -> int:
        """How many deliveries of a record have failed."""
        return self._counts.get(position, 0)

    def counted(self) -> list[int]:
        """The positions whose deliveries have failed."""
        return sorted(self._counts)

    def set_count(self, position: int, count: int) -> int:
        """Remember how many deliveries of a record have failed."""
        self._counts[position] = count
        return 0

    def time_of(self, position: int) -> int:
        """Memory keeps no times."""
        return 0

    def at_time(self, moment: int) -> int:
        """Memory keeps no times."""
        return self.first()

    def retain(self, octets: int, moment: int) -> int:
        """There are no segments here."""
        return self.first()

    def cut_at(self, octets: int) -> int:
        """There are no segments here."""
        return 0

    def sync_soon(self) -> int:
        """There is nothing to sync."""
        return 0

    def delete(self) -> int:
        """Forget every record."""
        for position in self._records.numbers():
            self.settle(position)
        return 0


class MemoryDefinitions(Definitions):
    """Definitions that live as long as this object."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {}

    def put(self, kind: str, key: tuple[str, ...], fields: Mapping[str, Any]) -> None:
        """Add a definition, or replace it where it stands."""
        self._rows.setdefault(kind, {})[key] = dict(fields)

    def drop(self, kind: str, key: tuple[str, ...]) -> None:
        """Remove a definition; a missing one is fine."""
        self._rows.get(kind, {}).pop(key, None)

    def load(self, kind: str) -> Iterable[tuple[tuple[str, ...], Mapping[str, Any]]]:
        """Every definition of a kind, in the order of their making."""
        return list(self._rows.get(kind, {}).items())


class MemoryStore(Store):
    """Opens logs in memory.

    Args:
        gauge: where every log counts its octets.
    """

    __slots__ = ("_gauge", "_made")

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._made = 0
        self.commit = Commit()
        # Nobody waits for memory: everything in it is as safe as it will ever be.
        self.commit.done = self.commit.ticket
        self.definitions = MemoryDefinitions()
        self.files = MemoryFiles()

    def new_identity(self) -> str:
        """A number is enough for names that nobody meets again."""
        self._made += 1
        return f"{self._made:032x}"

    def open_log(
        self, identity: str, *, durable: bool, keep_all: bool = False, segment_octets: int = 0
    ) -> Log:
        """An empty log: memory does not outlive the process, durable or not."""
        return MemoryLog(self._gauge)
