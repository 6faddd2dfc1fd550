"""The log of a queue that does not outlive the process: its messages stay objects in memory.

Where there are too many for that, the next ones are records like those of every log, in segments
that are written to disk when they are full. They are never synced, and every start removes them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from harebell.base.limits import (
    SHARED_BY_QUEUES,
    TRANSIENT_FIRST_BYTES,
    TRANSIENT_MEMORY_BYTES,
    TRANSIENT_RESET_BYTES,
    TRANSIENT_SEGMENT_BYTES,
)
from harebell.base.message import Message, copy_message
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.prefetch import prefetch_after
from harebell.kernels.records import message_octets
from harebell.store.segment import Segment
from harebell.store.segmented_log import SegmentedLog
from harebell.store.spill import Spill

if TYPE_CHECKING:
    from harebell.store.log_host import LogHost

_FIRST_LIMIT = TRANSIENT_FIRST_BYTES
_LAST_LIMIT = TRANSIENT_SEGMENT_BYTES
_MEMORY = TRANSIENT_MEMORY_BYTES
_RESET = TRANSIENT_RESET_BYTES
_SHARED_BY = SHARED_BY_QUEUES
_LARGE = TRANSIENT_SEGMENT_BYTES
"""The body from which a message has a segment of its own, which is written in slices."""


class TransientSegment(Segment):
    """A run of a transient log's messages: objects in memory, or records that go to disk.

    Positions of objects have the offsets that their records would have, so that what a range of
    messages takes is the same either way.

    Args:
        folder: of the log.
        first: the position of its first message.
        seed: where checksums start from.
        now: milliseconds since 1970.
        objects: whether its messages are objects.

    Attributes:
        size: octets that its records take, or would take.
        spills: whether its only message is a large object that is to be written to disk.
    """

    __slots__ = ("_since", "_times", "size", "spills")

    def __init__(self, folder: str, first: int, seed: int, now: int, objects: bool) -> None:
        super().__init__(folder, first, seed)
        if objects:
            self.messages = []
        self.size = 0
        self.spills = False
        self.newest = now
        # Messages that came in the same millisecond share a time: from which index on, and when.
        self._since = array("I", (0,))
        self._times = array("q", (now,))

    def end(self) -> int:
        """The size that the file has or would have."""
        return self.size

    def stamp(self, now: int) -> int:
        """The messages from the next one on come at this time."""
        self.newest = now
        self._since.append(self.positions.count)
        self._times.append(now)
        return 0

    def time_of(self, position: int) -> int:
        """When a message came that is an object, in milliseconds since 1970."""
        moment: int = self._times[bisect_right(self._since, position - self.first) - 1]
        return moment


class TransientLog(SegmentedLog):
    """Messages in segments, the newest of them objects.

    Args:
        store: what all logs share.
        identity: of the log.
    """

    def __init__(self, store: LogHost, identity: str) -> None:
        super().__init__(store, identity, f"transient/{identity}")
        self._limit = _FIRST_LIMIT
        self._tail: TransientSegment | None = None

    # --- per message ----------------------------------------------------------------------------

    def append(self, message: Message) -> int:
        """Keep a message, and never change it; returns its position."""
        tail = self._tail
        if tail is None or tail.size >= tail.limit:
            tail = self._next_segment()
        if len(message.body) >= _LARGE:
            tail = self._own_segment(tail)
        size = octets = message_octets(message)
        now = self._clock.ms
        position = self._end
        messages = tail.messages
        if messages is None:
            tail.newest = now
            tail.positions.add(tail.buffer.message(position, now, message, False))
            self._gauge.add(octets)
        else:
            if (
                message.origin
                or message.deliveries
                or message.timestamp
                or message.offset >= 0
                or type(message) is not Message
            ):
                message = _bare(message)
            if now != tail.newest:
                tail.stamp(now)
            tail.positions.add(tail.size)
            messages.append(message)
            octets = self._gauge.hold(message)
        tail.size += size
        tail.held += octets
        self._held += octets
        self._end = position + 1
        self._live += 1
        return position

    def read(self, position: int) -> Message | None:
        """The message at a position, which others may hold too; None when it was settled."""
        segment = self._find(position)
        if segment is None:
            return None
        messages = segment.messages
        if messages is None:
            return SegmentedLog.read(self, position)
        index = position - segment.first
        message: Message | None = messages[index]
        prefetch_after(messages, index)
        if self._counted is not None and message is not None and position in self._counted:
            message = copy_message(message, message.exchange, message.routing_key)
            message.deliveries = self._counted[position]
        return message

    def settle(self, position: int) -> int:
        """The message at a position will not be needed again."""
        segment = self._find(position)
        if segment is None or not segment.positions.settle(position):
            return 0
        self._live -= 1
        if self._counted is not None:
            self._counted.pop(position, None)
        if segment.messages is not None:
            self._let_go(segment, position)
        if segment.positions.live == 0:
            self._emptied(segment)
        return 0

    def see(self, position: int) -> int:
        """Nothing outlives the process that could ask."""
        return 0

    def _let_go(self, segment: Segment, position: int) -> int:
        """A message that is an object was settled."""
        messages = segment.messages
        index = position - segment.first
        assert messages is not None, "its caller looked"
        prefetch_after(messages, index)
        message = messages[index]
        messages[index] = None
        octets = self._gauge.let_go(message)
        segment.held -= octets
        self._held -= octets
        return 0

    def _pour_one(self, segment: Segment, position: int, builder: BatchBuilder) -> bool:
        """Make a message a row; False when it cannot be read and that is the end."""
        if segment.messages is None:
            return SegmentedLog._pour_one(self, segment, position, builder)  # noqa: SLF001  # a record
        message = segment.messages[position - segment.first]
        message = copy_message(message, message.exchange, message.routing_key)
        message.timestamp = self.time_of(position)
        builder.message(message, position)
        return True

    # --- now and then ---------------------------------------------------------------------------

    def settle_range(self, first: int, end: int) -> int:
        """Settle every message from `first` up to, not including, `end`."""
        for segment in list(self.segments):
            low, high = max(first, segment.first), min(end, segment.positions.end())
            if low >= high or not segment.positions.live:
                continue
            if segment.messages is not None:
                for position in range(low, high):
                    if not segment.positions.settled(position):
                        self._let_go(segment, position)
            self._live -= segment.positions.settle_range(low, high)
            if segment.positions.live == 0:
                self._emptied(segment)
        return self._forget_counts(first, end)

    def seen(self) -> int:
        """Nothing was there before."""
        return 0

    def set_count(self, position: int, count: int) -> int:
        """Remember how many deliveries of a message have failed."""
        self._set_count(position, count)
        return 0

    def time_of(self, position: int) -> int:
        """When a message was appended, in milliseconds since 1970; 0 when it cannot be read."""
        segment = self._find(position)
        if segment is None or segment.messages is None:
            return SegmentedLog.time_of(self, position)
        assert isinstance(segment, TransientSegment), "as made below"
        return 0 if segment.positions.settled(position) else segment.time_of(position)

    def cut_at(self, octets: int) -> int:
        """Go on in a new segment from this size on, or from the next one on."""
        self._limit = octets
        if self._tail is not None:
            self._tail.limit = octets
        return 0

    def sync_soon(self) -> int:
        """There is nothing to sync."""
        return 0

    def delete(self) -> int:
        """Let every message go, and the files too."""
        self._tail = None
        for segment in list(self.segments):
            self._emptied(segment)
        self._live = 0
        self._counted = None
        self._store.closed(self)
        self._reader.forget()
        return 0

    # --- inside ---------------------------------------------------------------------------------

    def _own_segment(self, tail: TransientSegment) -> TransientSegment:
        """The segment of a large message, which is an object until it is written to disk."""
        full = self._held > _MEMORY
        if tail.positions.count or tail.messages is None:
            tail = self._next_segment(True)
        tail.limit = 0
        tail.spills = full
        return tail

    def _next_segment(self, large: bool = False) -> TransientSegment:
        """Go on in a new segment, unless the present one may grow."""
        tail = self._tail
        if tail is not None and not large:
            crowded = tail.positions.live * 2 > tail.positions.count
            if crowded and tail.size < min(tail.limit * 4, _LAST_LIMIT):
                tail.limit = min(tail.limit * 4, _LAST_LIMIT)
                return tail
        objects = large or self._held <= _MEMORY or (tail is not None and self._is_shared(tail))
        fresh = TransientSegment(self.folder, self._end, self.seed, self._clock.ms, objects)
        fresh.limit = self._limit
        self._tail = fresh
        self.segments.append(fresh)
        if tail is not None and tail.positions.live == 0:
            self._emptied(tail)
        elif tail is not None and tail.messages is None and (large or not objects):
            self._spill(tail)
        elif tail is not None and tail.spills and not self._is_shared(tail):
            self._store.go_on(Spill(self._store, self, tail).go_on)
        return fresh

    def _is_shared(self, segment: TransientSegment) -> bool:
        """Whether so many other logs hold what came last that writing it would save no memory.

        Each of them would write a copy.
        """
        messages = segment.messages
        message = messages[-1] if messages else None
        return message is not None and self._gauge.sharing(message) >= _SHARED_BY

    def _spill(self, segment: TransientSegment) -> int:
        """Write a full segment of records to disk; without room it stays in memory.

        No thread does that: a publisher faster than the disk waits for it here, without memory.
        """
        data = segment.buffer.take()
        try:
            self._store.write_now(segment, self.folder, data, 0)
        except OSError as error:
            self._store.report("warning", f"{self.folder} stays in memory: {error}")
            segment.put_back(data, 0, self.seed)
            return 0
        segment.made = True
        return self.release(segment, segment.held)

    def spilled(self, segment: TransientSegment) -> None:
        """The large message of a segment is on disk, and an object no longer."""
        assert segment.messages is not None, "it was one"
        octets = self._gauge.let_go(segment.messages[0])
        segment.held -= octets
        self._held -= octets
        segment.messages = None
        self.has_large = True
        segment.goes_on(segment.size, self.seed)

    def _emptied(self, segment: Segment) -> int:
        """Nothing in a segment is live: it goes, unless it is small and written to."""
        if segment is self._tail:
            if segment.end() < _RESET:
                return 0
            self._tail = None
        messages = segment.messages
        if messages is not None and segment.held:
            # Some are live: the queue is deleted, or gives up its oldest.
            for index in range(len(messages)):
                if messages[index] is not None:
                    self._let_go(segment, segment.first + index)
        self._leave(segment)
        segment.flying = None
        if segment.made:
            self._store.unspill(segment)
        return 0


def _bare(message: Message) -> Message:
    """A copy of a message with what a record has of it, and nothing more."""
    copy = copy_message(message, message.exchange, message.routing_key)
    copy.timestamp = 0
    copy.offset = -1
    copy.origin = 0
    copy.deliveries = 0
    return copy
