"""The log of a transient queue: its messages are objects in memory.

Above a memory limit, further messages become records like those of other logs, in segments that
are written to disk when they are full. They are never synced, and every start removes them. When
the memory of the broker is short, objects become records too, and all of them go to disk.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Done, i32, i64, isize
from harebell.base.message import Message, copy_message
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.prefetch import prefetch_after
from harebell.kernels.records import RecordBuffer, message_size
from harebell.kernels.settled_bitmap import SettledBitmap
from harebell.store.limits import (
    SHARED_BY_QUEUES,
    TRANSIENT_FIRST_BYTES,
    TRANSIENT_MEMORY_BYTES,
    TRANSIENT_RESET_BYTES,
    TRANSIENT_SEGMENT_BYTES,
    TRANSIENT_SPILL_BYTES,
)
from harebell.store.log.segment import Segment
from harebell.store.log.segmented_log import SegmentedLog
from harebell.store.log.spill import Spill

if TYPE_CHECKING:
    from harebell.store.log.log_host import LogHost

_FIRST_LIMIT: i64 = TRANSIENT_FIRST_BYTES
_LAST_LIMIT: i64 = TRANSIENT_SEGMENT_BYTES
_MEMORY: i64 = TRANSIENT_MEMORY_BYTES
_RESET: i64 = TRANSIENT_RESET_BYTES
_SHARED_BY: isize = SHARED_BY_QUEUES
_SPILLED: i64 = TRANSIENT_SPILL_BYTES
_LARGE: isize = TRANSIENT_SEGMENT_BYTES
"""Messages with a body of this size get a segment of their own, which is written in slices."""


class TransientSegment(Segment):
    """A segment of a transient log: objects in memory, or records that are written to disk.

    Objects have the offsets that their records would have, so the size of a range of messages is
    the same in both forms.

    Args:
        directory: the directory of the log.
        first: the position of its first message.
        seed: the initial value of checksums.
        now: milliseconds since 1970.
        objects: whether its messages are objects.

    Attributes:
        size: the size of its records in bytes, also while they are objects.
        spills: whether its only message is a large object that will be written to disk.
        written: whether that write has begun.
    """

    def __init__(self, directory: str, first: int, seed: int, now: int, objects: bool) -> None:
        super().__init__(directory, first, seed)
        if objects:
            self.messages = []
        self.size: i64 = 0
        self.spills = False
        self.written = False
        self.newest = now
        # Messages of the same millisecond share an entry: its first index, and its time.
        self._since = array("I", (0,))
        self._times = array("q", (now,))

    def end(self) -> i64:
        """Return the size of the file, whether or not it is written."""
        return self.size

    def stamp(self, now: i64) -> Done:
        """Set the arrival time of the next messages."""
        self.newest = now
        self._since.append(self.positions.count)
        self._times.append(now)
        return 0

    def time_of(self, position: i64) -> i64:
        """Return the arrival time of an object, in milliseconds since 1970."""
        moment: int = self._times[bisect_right(self._since, position - self.first) - 1]
        return moment


class TransientLog(SegmentedLog):
    """The log of a transient queue.

    Args:
        store: files, clock and limits, which all logs share.
        identity: the identity of the log.
    """

    def __init__(self, store: LogHost, identity: str) -> None:
        super().__init__(store, identity, f"transient/{identity}")
        self._limit: i64 = _FIRST_LIMIT
        self._tail: TransientSegment | None = None

    # --- per message ----------------------------------------------------------------------------

    def append(self, message: Message) -> i64:
        """Append a message, which is never changed; return its position."""
        tail = self._tail
        if tail is None or tail.size >= tail.limit:
            tail = self._next_segment()
        if len(message.body) >= _LARGE:
            tail = self._own_segment(tail)
        size: i64 = message_size(message)
        byte_count: i64 = size
        now: i64 = self._clock.ms
        position: i64 = self._end
        messages: list[Any] | None = tail.messages
        if messages is None:
            tail.newest = now
            tail.positions.add(tail.buffer.message(position, now, message, False))
            self._gauge.add(byte_count)
        else:
            if (
                message.origin
                or message.timestamp
                or message.offset >= 0
                or type(message) is not Message
            ):
                # Other queues may hold the object with their own marks, and a record has none of
                # them either.
                message = _bare(message)
            if now != tail.newest:
                tail.stamp(now)
            tail.positions.add(tail.size)
            messages.append(message)
            byte_count = self._gauge.hold(message)
        tail.size += size
        tail.held += byte_count
        self._held += byte_count
        self._end = position + 1
        self._live += 1
        return position

    def read(self, position: i64) -> C[Message | None]:
        """Return the message at a position, which others may hold too; None if it is settled."""
        segment = self._find(position)
        if segment is None:
            return None
        messages: list[Any] | None = segment.messages
        if messages is None:
            return SegmentedLog.read(self, position)
        index: isize = position - segment.first
        message: Message | None = messages[index]
        prefetch_after(messages, index)
        return message

    def settle(self, position: i64) -> Done:
        """Settle a position: its message is not needed again."""
        segment = self._find(position)
        if segment is None or not segment.positions.settle(position):
            return 0
        self._live -= 1
        if self._counted is not None:
            self._counted.pop(position, None)
        if segment.messages is not None:
            self._release(segment, position)
        if segment.positions.live == 0:
            self._emptied(segment)
        return 0

    def see(self, position: i64) -> Done:
        """No-op: after a restart there is nothing that was handed out before."""
        return 0

    def _release(self, segment: Segment, position: i64) -> Done:
        """Release a settled message that is an object."""
        messages: list[Any] | None = segment.messages
        index: isize = position - segment.first
        assert messages is not None, "its caller looked"
        prefetch_after(messages, index)
        message: Message = messages[index]
        messages[index] = None
        byte_count: isize = self._gauge.release(message)
        segment.held -= byte_count
        self._held -= byte_count
        return 0

    def _append_one_to(self, segment: Segment, position: i64, builder: BatchBuilder) -> C[bool]:
        """Add a message to a batch as a row; return False if it cannot be read."""
        if segment.messages is None:
            return self._append_record_to(segment, position, builder)
        message: Message = segment.messages[position - segment.first]
        message = copy_message(message, message.exchange, message.routing_key)
        message.timestamp = self.time_of(position)
        builder.message(message, position)
        return True

    # --- now and then ---------------------------------------------------------------------------

    def _settle_in(self, segment: Segment, first: i64, end: i64) -> Done:
        """Settle the messages of a segment from `first` up to, not including, `end`."""
        messages: list[Any] | None = segment.messages
        if messages is not None:
            byte_count: isize = 0
            index: isize
            for index in range(first - segment.first, end - segment.first):
                prefetch_after(messages, index)
                message: Message = messages[index]
                if message is not None:
                    messages[index] = None
                    byte_count += self._gauge.release(message)
            segment.held -= byte_count
            self._held -= byte_count
        done: i64 = segment.positions.settle_range(first, end)
        self._live -= done
        if done and segment.positions.live == 0:
            self._emptied(segment)
        return 0

    def seen(self) -> i64:
        """Return 0: no message is older than the process."""
        return 0

    def set_count(self, position: i64, count: i32) -> Done:
        """Remember how many deliveries of a message have failed."""
        self._set_count(position, count)
        return 0

    def time_of(self, position: i64) -> i64:
        """Return when a message was appended, in ms since 1970; 0 if it cannot be read."""
        segment = self._find(position)
        if segment is None or segment.messages is None:
            return SegmentedLog.time_of(self, position)
        assert isinstance(segment, TransientSegment), "as made below"
        return 0 if segment.positions.settled(position) else segment.time_of(position)

    def cut_at(self, byte_count: i64) -> Done:
        """Set the size at which segments are full, the present one included."""
        self._limit = byte_count
        if self._tail is not None:
            self._tail.limit = byte_count
        return 0

    def sync_soon(self) -> Done:
        """No-op: a transient log is never synced."""
        return 0

    def delete(self) -> Done:
        """Release all messages and remove the files."""
        self._tail = None
        for segment in list(self.segments):
            self._emptied(segment)
        self._live = 0
        self._counted = None
        self._store.closed(self)
        self._reader.forget()
        return 0

    # --- inside ---------------------------------------------------------------------------------

    def _own_segment(self, tail: TransientSegment) -> C[TransientSegment]:
        """Return a segment for a large message, which is an object until it is on disk."""
        full = self._held > _MEMORY
        if tail.positions.count or tail.messages is None:
            tail = self._next_segment(True)
        tail.limit = 0
        tail.spills = full
        return tail

    def _next_segment(self, large: bool = False) -> C[TransientSegment]:
        """Return the segment for the next message: a new one, or the present one with more room."""
        tail = self._tail
        if tail is not None and not large:
            # A segment is freed when all of it is settled. While most of it is live, a larger one
            # means fewer of them; once most is settled, a new one lets this one be freed soon.
            crowded = tail.positions.live * 2 > tail.positions.count
            if crowded and tail.size < min(tail.limit * 4, _LAST_LIMIT):
                tail.limit = min(tail.limit * 4, _LAST_LIMIT)
                return tail
        room: bool = self._held <= _MEMORY and not self._store.pressed
        # What many queues share stays an object: as a record each of them would have a copy.
        objects: bool = large or room or (tail is not None and self._is_shared(tail))
        fresh = TransientSegment(self.directory, self._end, self.seed, self._clock.ms, objects)
        fresh.limit = self._limit
        self._tail = fresh
        self.segments.append(fresh)
        if tail is not None and tail.positions.live == 0:
            self._emptied(tail)
        elif tail is not None and tail.messages is None and (large or not objects):
            self._spill(tail)
        elif tail is not None and tail.spills and not self._is_shared(tail):
            self._write_large(tail)
        return fresh

    def _write_large(self, segment: TransientSegment) -> None:
        """Write a large object to disk, in several turns if necessary."""
        if not segment.written:
            segment.written = True
            self._store.go_on(Spill(self._store, self, segment).go_on)

    def _is_shared(self, segment: TransientSegment) -> C[bool]:
        """True if many other logs hold the last message: each of them would write a copy."""
        messages: list[Any] | None = segment.messages
        message: Message | None = messages[-1] if messages else None
        return message is not None and self._gauge.sharing(message) >= _SHARED_BY

    def _spill(self, segment: TransientSegment) -> C[bool]:
        """Write a full segment of records to disk; on a full disk it stays in memory: False.

        The event loop writes it and not a thread, so a publisher faster than the disk is slowed
        down here and does not fill the memory.
        """
        data = segment.buffer.take()
        try:
            self._store.write_now(segment, self.directory, data, 0)
        except OSError as error:
            self._store.report("warning", f"{self.directory} stays in memory: {error}")
            segment.put_back(data, 0, self.seed)
            return False
        segment.made = True
        self.release(segment, segment.held)
        return True

    def in_memory(self) -> i64:
        """Return how many bytes of messages are in memory."""
        return self._held

    def spill_one(self) -> int:
        """Write the oldest segment that is in memory to disk; return its size.

        It is 0 if there is none, and -1 if the disk does not take it.
        What many logs hold stays: each of them would write a copy of what is in memory once.
        """
        for segment in self.segments:
            if segment.held < _SPILLED or not segment.positions.live:
                continue
            assert isinstance(segment, TransientSegment), "as made above"
            if segment.written or self._is_shared(segment):
                continue
            if segment is self._tail:
                # The next message begins another one.
                self._tail = None
            if segment.messages is not None and segment.limit == 0:
                self._write_large(segment)
                return 1
            self._to_records(segment)
            return segment.size if self._spill(segment) else -1
        return 0

    def _to_records(self, segment: TransientSegment) -> C[None]:
        """Make records of the objects of a segment, at the offsets that these have already."""
        messages: list[Any] | None = segment.messages
        if messages is None:
            return
        buffer: RecordBuffer
        positions: SettledBitmap
        buffer, positions = segment.buffer, segment.positions
        message: Message
        for index, message in enumerate(messages):
            if message is None:
                continue
            position: i64 = segment.first + index
            # A settled message leaves a gap: those behind it keep the offsets that `positions` has.
            gap: i64 = positions.offset(position) - buffer.size
            if gap:
                buffer.raw(bytes(gap))
            buffer.message(position, segment.time_of(position), message, False)
            byte_count: isize = self._gauge.release(message)
            segment.held -= byte_count
            self._held -= byte_count
        buffer.raw(bytes(segment.size - buffer.size))
        segment.messages = None
        segment.held += segment.size
        self._held += segment.size
        self._gauge.add(segment.size)

    def spilled(self, segment: TransientSegment) -> None:
        """Release the object of a large message that is on disk now."""
        assert segment.messages is not None, "it was one"
        byte_count = self._gauge.release(segment.messages[0])
        segment.held -= byte_count
        self._held -= byte_count
        segment.messages = None
        self.has_large = True
        segment.continue_at(segment.size, self.seed)

    def _emptied(self, segment: Segment) -> Done:
        """Remove a segment without live messages, unless it is the newest one and still small."""
        if segment is self._tail:
            # A queue that is empty after each message would make a segment per message otherwise.
            if segment.end() < _RESET:
                return 0
            self._tail = None
        messages: list[Any] | None = segment.messages
        if messages is not None and segment.held:
            # Some are live if the queue is deleted or drops its oldest messages.
            index: isize
            for index in range(len(messages)):
                if messages[index] is not None:
                    self._release(segment, segment.first + index)
        self._leave(segment)
        segment.flying = None
        if segment.made:
            self._store.unspill(segment)
        return 0


def _bare(message: Message) -> C[Message]:
    """Copy a message without the fields that a record does not store."""
    copy: Message = copy_message(message, message.exchange, message.routing_key)
    copy.timestamp = 0
    copy.offset = -1
    copy.origin = 0
    return copy
