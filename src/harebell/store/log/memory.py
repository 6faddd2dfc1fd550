"""The log in memory: records stay until they are settled; the gauge counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import Commit, Definitions, Log, Store
from harebell.base.sequence import Sequence
from harebell.store.encoded import checked_table
from harebell.store.memory_files import MemoryFiles


class MemoryLog(Log):
    """The records of one queue, as objects.

    Args:
        gauge: where the records' bytes are counted.
    """

    __slots__ = ("_counts", "_gauge", "_records")

    def __init__(self, gauge: Gauge) -> None:
        super().__init__()
        self._counts: dict[int, int] = {}
        self._gauge = gauge
        self._records = Sequence()

    def append(self, message: Message) -> int:
        """Append a record; return its position."""
        self._gauge.hold(message)
        return self._records.append(message)

    def read(self, position: int) -> Message | None:
        """Return the record at a position; None if it is settled."""
        record: Message | None = self._records.get(position)
        return record

    def settle(self, position: int) -> int:
        """Remove the record at a position."""
        record: Message | None = self._records.take(position)
        if record is not None:
            self._counts.pop(position, None)
            self._gauge.release(record)
        return 0

    def first(self) -> int:
        """Return the smallest unsettled position; `end()` if there is none."""
        return self._records.first()

    def end(self) -> int:
        """Return the position that the next record gets."""
        return self._records.next

    def settle_range(self, first: int, end: int) -> int:
        """Remove the records from `first` up to, not including, `end`."""
        for position in range(first, end):
            self.settle(position)
        return 0

    def next(self, position: int) -> int:
        """Return the smallest unsettled position from `position` on; `end()` if there is none."""
        return self._records.next_from(position)

    def live(self) -> int:
        """Return how many records there are."""
        return self._records.count

    def reach(
        self, position: int, end: int, messages: int, byte_count: int
    ) -> tuple[int, int, int]:
        """Return how far that many records reach, or that many bytes of their bodies."""
        reached, count, total = position, 0, 0
        position = self.next(position)
        while position < end and count < messages:
            message = self._records.get(position)
            size = 0 if message is None else len(message.body)
            if 0 <= byte_count < total + size:
                break
            total += size
            count += 1
            reached = position + 1
            position = self.next(reached)
        return reached, count, total

    def byte_count(self) -> int:
        """Return 0: memory is not counted per log."""
        return 0

    def see(self, position: int) -> int:
        """Do nothing: the log does not survive a restart."""
        return 0

    def seen(self) -> int:
        """Return 0: the log was empty at the start."""
        return 0

    def count(self, position: int) -> int:
        """Return the delivery count of a record."""
        return self._counts.get(position, 0)

    def counted(self) -> list[int]:
        """Return the positions with a delivery count."""
        return sorted(self._counts)

    def set_count(self, position: int, count: int) -> int:
        """Set the delivery count of a record."""
        self._counts[position] = count
        return 0

    def time_of(self, position: int) -> int:
        """Return 0: append times are not kept."""
        return 0

    def at_time(self, moment: int) -> int:
        """Return the first position: append times are not kept."""
        return self.first()

    def retain(self, byte_count: int, moment: int, below: int = -1) -> int:
        """Do nothing: there are no segments."""
        return self.first()

    def cut_at(self, byte_count: int) -> int:
        """Do nothing: there are no segments."""
        return 0

    def sync_soon(self) -> int:
        """Do nothing: there is nothing to sync."""
        return 0

    def delete(self) -> int:
        """Remove all records."""
        for position in self._records.numbers():
            self.settle(position)
        return 0


Encode = Callable[[Mapping[str, Any]], bytes]


def _unchecked(table: Mapping[str, Any]) -> bytes:
    return b""


class MemoryDefinitions(Definitions):
    """Definitions in memory.

    Args:
        encode: encodes a table of arguments, for a store that refuses what one on disk refuses.
    """

    __slots__ = ("_before", "_encode", "_rows")

    def __init__(self, encode: Encode = _unchecked) -> None:
        self._rows: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {}
        self._encode = encode
        # Replaced and removed rows of the block that `whole` has begun.
        self._before: list[tuple[str, tuple[str, ...], dict[str, Any] | None]] | None = None

    def check(self, resource: str, table: Mapping[str, Any]) -> int:
        """Return the size of a table of arguments in bytes, or refuse it."""
        return len(checked_table(self._encode, resource, table))

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Make all changes of a block, or none of them if it raises."""
        # Blocks may be nested: the outer one undoes the changes of inner blocks, too, if it fails.
        outer, self._before = self._before, []
        try:
            yield
        except BaseException:
            for kind, key, row in reversed(self._before):
                rows = self._rows.setdefault(kind, {})
                if row is None:
                    rows.pop(key, None)
                else:
                    rows[key] = row
            self._before = []
            raise
        finally:
            if outer is not None:
                outer += self._before
            self._before = outer

    def put(self, kind: str, key: tuple[str, ...], fields: Mapping[str, Any]) -> None:
        """Add or replace a definition."""
        for value in fields.values():
            if isinstance(value, Mapping):
                self.check(f"{kind} '{key[-1]}'", value)
        self._note(kind, key)
        self._rows.setdefault(kind, {})[key] = dict(fields)

    def drop(self, kind: str, key: tuple[str, ...]) -> None:
        """Remove a definition; a missing one is no error."""
        self._note(kind, key)
        self._rows.get(kind, {}).pop(key, None)

    def _note(self, kind: str, key: tuple[str, ...]) -> None:
        if self._before is not None:
            self._before.append((kind, key, self._rows.get(kind, {}).get(key)))

    def load(self, kind: str) -> Iterable[tuple[tuple[str, ...], Mapping[str, Any]]]:
        """Return all definitions of a kind, in the order of creation."""
        return list(self._rows.get(kind, {}).items())


class MemoryStore(Store):
    """A store in memory.

    Args:
        gauge: where every log counts its bytes.
        encode: see `MemoryDefinitions`.
    """

    __slots__ = ("_gauge", "_made")

    def __init__(self, gauge: Gauge, encode: Encode = _unchecked) -> None:
        self._gauge = gauge
        self._made = 0
        self.commit = Commit()
        # No commit is needed: records in memory are never safer than now.
        self.commit.done = self.commit.ticket
        self.definitions = MemoryDefinitions(encode)
        self.files = MemoryFiles()

    def new_identity(self) -> str:
        """Return a new identity: a number is enough, as it is never stored."""
        self._made += 1
        return f"{self._made:032x}"

    def new_era(self) -> str:
        """Return a new name of an era."""
        self._made += 1
        return f"{self._made:016x}"

    def open_log(
        self, identity: str, *, durable: bool, keep_all: bool = False, segment_bytes: int = 0
    ) -> Log:
        """Return an empty log."""
        return MemoryLog(self._gauge)
