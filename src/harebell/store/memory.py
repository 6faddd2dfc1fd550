"""The log in memory: records live until they are settled, and are counted on the gauge."""

from __future__ import annotations

from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import Log, Store
from harebell.base.sequence import Sequence


class MemoryLog(Log):
    """One queue's records, as objects.

    Args:
        gauge: where the records' octets are counted.
    """

    __slots__ = ("_gauge", "_records")

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._records = Sequence()

    def append(self, message: Message) -> int:
        """Add a record at the end; returns its position."""
        self._gauge.add(message.footprint())
        return self._records.append(message)

    def read(self, position: int) -> Message | None:
        """The record at a position; None when it was settled."""
        record: Message | None = self._records.get(position)
        return record

    def settle(self, position: int) -> int:
        """Forget the record at a position."""
        record: Message | None = self._records.take(position)
        if record is not None:
            self._gauge.take(record.footprint())
        return 0

    def first(self) -> int:
        """The smallest position that is not settled; `end()` when there is none."""
        return self._records.first()

    def end(self) -> int:
        """The position that the next record will get."""
        return self._records.next

    def delete(self) -> int:
        """Forget every record."""
        for position in self._records.numbers():
            self.settle(position)
        return 0


class MemoryStore(Store):
    """Opens logs in memory.

    Args:
        gauge: where every log counts its octets.
    """

    __slots__ = ("_gauge",)

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge

    def open_log(self, vhost: str, queue: str, durable: bool) -> Log:
        """An empty log: memory does not outlive the process, durable or not."""
        return MemoryLog(self._gauge)
