"""A log that a test can prepare: with what was there before, damage, times and segments.

Where the store of the disk is of no interest, this says in few lines what any store does.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.store.log.memory import MemoryLog


class PreparedLog(MemoryLog):
    """A log in memory that remembers what it was told, and whose past is made up.

    Attributes:
        handed_out: what `seen` says: positions below it may have been delivered before.
        marked: what `see` was told last.
        damaged: positions that cannot be read.
        synced: how often the next commit was asked to hold everything.
        reading: called with every position that is read.
        per_segment: records in a segment, for `retain`.
        cuts: the sizes of segments that were asked for.
    """

    def __init__(self, clock: Clock | None = None, per_segment: int = 10) -> None:
        super().__init__(Gauge())
        self.clock = clock or Clock()
        self.handed_out = 0
        self.marked = 0
        self.damaged: set[int] = set()
        self.synced = 0
        self.cuts: list[int] = []
        self.per_segment = per_segment
        self.times: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self.reading: Callable[[int], None] = lambda _: None

    def append(self, message: Message) -> int:
        position = super().append(message)
        self.times[position] = self.clock.ms
        self.sizes[position] = len(message.body)
        return position

    def read(self, position: int) -> Message | None:
        self.reading(position)
        return None if position in self.damaged else super().read(position)

    def see(self, position: int) -> int:
        self.marked = position
        return 0

    def seen(self) -> int:
        return self.handed_out

    def cut_at(self, byte_count: int) -> int:
        self.cuts.append(byte_count)
        return 0

    def sync_soon(self) -> int:
        self.synced += 1
        return 0

    def time_of(self, position: int) -> int:
        return self.times.get(position, 0)

    def at_time(self, moment: int) -> int:
        for position in range(self.first(), self.end()):
            if self.times[position] >= moment:
                return position
        return self.end()

    def byte_count(self) -> int:
        return sum(self.sizes[position] for position in range(self.first(), self.end()))

    def retain(self, byte_count: int, moment: int, below: int = -1) -> int:
        while self.first() // self.per_segment < (self.end() - 1) // self.per_segment:
            after = (self.first() // self.per_segment + 1) * self.per_segment
            if not (byte_count and self.byte_count() > byte_count) and not (
                moment and self.times[after - 1] < moment
            ):
                break
            if 0 <= below < after:
                break
            self.settle_range(self.first(), after)
        return self.first()
