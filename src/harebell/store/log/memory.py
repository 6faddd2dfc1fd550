"""The log in memory: records stay until they are settled; the gauge counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harebell.base.c_types import C, Done, i32, i64
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

    def __init__(self, gauge: Gauge) -> None:
        super().__init__()
        self._counts: dict[int, int] = {}
        self._gauge = gauge
        self._records = Sequence()

    def append(self, message: Message) -> i64:
        """Append a record; return its position."""
        self._gauge.hold(message)
        return self._records.append(message)

    def read(self, position: i64) -> C[Message | None]:
        """Return the record at a position; None if it is settled."""
        record: Message | None = self._records.get(position)
        return record

    def settle(self, position: i64) -> Done:
        """Remove the record at a position."""
        record: Message | None = self._records.take(position)
        if record is not None:
            self._counts.pop(position, None)
            self._gauge.release(record)
        return 0

    def first(self) -> i64:
        """Return the smallest unsettled position; `end()` if there is none."""
        return self._records.first()

    def end(self) -> i64:
        """Return the position that the next record gets."""
        return self._records.next

    def settle_range(self, first: i64, end: i64) -> Done:
        """Remove the records from `first` up to, not including, `end`."""
        for position in range(first, end):
            self.settle(position)
        return 0

    def next(self, position: i64) -> i64:
        """Return the smallest unsettled position from `position` on; `end()` if there is none."""
        return self._records.next_from(position)

    def live(self) -> i64:
        """Return how many records there are."""
        return self._records.count

    def reach(
        self, position: i64, end: i64, messages: i64, byte_count: i64
    ) -> C[tuple[int, int, int]]:
        """Return how far that many records reach, or that many bytes of their bodies."""
        reached, count, total = position, 0, 0
        position = self.next(position)
        while position < end and count < messages:
            message: Message = self._records.get(position)
            size = 0 if message is None else len(message.body)
            if 0 <= byte_count < total + size:
                break
            total += size
            count += 1
            reached = position + 1
            position = self.next(reached)
        return reached, count, total

    def byte_count(self) -> i64:
        """Return 0: memory is not counted per log."""
        return 0

    def see(self, position: i64) -> Done:
        """Do nothing: the log does not survive a restart."""
        return 0

    def seen(self) -> i64:
        """Return 0: the log was empty at the start."""
        return 0

    def count(self, position: i64) -> i32:
        """Return the delivery count of a record."""
        return self._counts.get(position, 0)

    def counted(self) -> C[list[int]]:
        """Return the positions with a delivery count."""
        return sorted(self._counts)

    def set_count(self, position: i64, count: i32) -> Done:
        """Set the delivery count of a record."""
        self._counts[position] = count
        return 0

    def time_of(self, position: i64) -> i64:
        """Return 0: append times are not kept."""
        return 0

    def at_time(self, moment: i64) -> i64:
        """Return the first position: append times are not kept."""
        return self.first()

    def retain(self, byte_count: i64, moment: i64, below: i64 = -1) -> i64:
        """Do nothing: there are no segments."""
        return self.first()

    def cut_at(self, byte_count: i64) -> Done:
        """Do nothing: there are no segments."""
        return 0

    def sync_soon(self) -> Done:
        """Do nothing: there is nothing to sync."""
        return 0

    def delete(self) -> Done:
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
