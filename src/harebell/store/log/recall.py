"""Read a large message back from disk, or a segment whose index is lost, in slices.

Reading 50 MiB takes 25 ms, in which the event loop would serve no other connection. So a queue asks
`Log.is_spilled` before it takes a message, and `Log.load_spilled` loads a spilled one. The loaded
message stays in its segment until it is taken. Loaded messages count in the block cache, which
releases the oldest of them; a released message is loaded again when a consumer is ready for it.
A message whose place in its segment has to be searched for is spilled in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.message import Message
from harebell.kernels.bodies import GatheredBody
from harebell.kernels.records import record_size
from harebell.store.limits import (
    SCAN_WINDOW_BYTES,
    TRANSIENT_SLICE_BYTES,
    TRANSIENT_SLICE_UNITS,
)
from harebell.store.log import segment_index
from harebell.store.log.large_record import LargeReader

if TYPE_CHECKING:
    from harebell.store.log.log_host import LogHost
    from harebell.store.log.segment import Segment

_SIZE_BYTES = 4
_WINDOW_UNITS = SCAN_WINDOW_BYTES // TRANSIENT_SLICE_BYTES * TRANSIENT_SLICE_UNITS


class Recalled:
    """A large message that was fetched and not taken yet.

    Args:
        segment: where its body was spilled to.
        message: the message as read.
    """

    def __init__(self, segment: Segment, message: Message) -> None:
        self._segment = segment
        self.message = message

    def empty(self) -> int:
        """Release the message; it can be fetched again."""
        self._segment.recalled = None
        return 0


class Recall:
    """Reads the one message of a segment.

    Args:
        store: what reads files in a thread.
        segment: a segment with one message, which is large and on disk.
        seed: the initial value of the log's checksums.
        done: called when `read` has the message or will report an error.
    """

    def __init__(
        self, store: LogHost, segment: Segment, seed: int, done: Callable[[], object]
    ) -> None:
        self.waiting = [done]
        self._store = store
        self._segment = segment
        self._offset = segment.positions.offset(segment.first)
        self._seed = seed
        self._reader: LargeReader | None = None
        self._body = GatheredBody()

    def go_on(self) -> bool:
        """Read as much as this turn has time for; return True at the end."""
        segment = self._segment
        # The message may have been settled or purged between two slices.
        if segment.positions.live:
            try:
                message = self._read()
                if message is None:
                    return False
                segment.recalled = Recalled(segment, message)
                self._store.handles.blocks.add(segment.recalled, len(message.body))
            except (OSError, ValueError):
                # `read` meets the same error and reports it.
                segment.fetchable = False
        segment.recall = None
        for done in self.waiting:
            done()
        return True

    def _read(self) -> Message | None:
        """Return the message, or None if there is more to read.

        Raises:
            OSError: the file cannot be read.
            ValueError: the record is damaged.
        """
        reader = self._reader
        if reader is None:
            file = self._store.handles.reader(self._segment)
            size = record_size(file.read_at(_SIZE_BYTES, self._offset), 0)
            # Checked before memory is allocated: damaged bytes may claim any size.
            if size > self._segment.buffer.start - self._offset:
                raise ValueError("a large record claims more than its segment has")
            reader = self._reader = LargeReader(file, self._offset, size, self._seed)
            self._body = GatheredBody(reader.remaining)
        while reader.remaining:
            # Its file may have been closed meanwhile, to open others.
            file = self._store.handles.reader(self._segment)
            self._body.add(reader.read(file, TRANSIENT_SLICE_BYTES))
            if self._store.work.charge(TRANSIENT_SLICE_UNITS) and reader.remaining:
                return None
        return reader.message(self._body.take())


class OffsetSearch:
    """Finds the offsets of a segment without an index that fits, in its records.

    Args:
        store: what reads files.
        segment: its offsets are not loaded.
        seed: the initial value of the log's checksums.
        done: called when the offsets are loaded or `read` will report an error.
    """

    def __init__(
        self, store: LogHost, segment: Segment, seed: int, done: Callable[[], object]
    ) -> None:
        self.waiting = [done]
        self._store = store
        self._segment = segment
        self._seed = seed
        # Its file may be closed meanwhile, to open others.
        self._slices = segment_index.finding_offsets(
            lambda: store.handles.reader(segment), segment, seed
        )

    def go_on(self) -> bool:
        """Search as long as this turn has time; return True at the end."""
        segment = self._segment
        try:
            # The messages may have been settled, and the file removed, between two slices.
            if segment.positions.live:
                for _ in self._slices:
                    if self._store.work.charge(_WINDOW_UNITS):
                        return False
                self._store.offsets.add(segment, self._seed)
            segment.fetchable = segment.positions.is_loaded()
        except OSError:
            segment.fetchable = False
        segment.recall = None
        for done in self.waiting:
            done()
        return True
