"""Which full segments have the offsets of their records in memory, within a limit for all logs.

A log needs the offsets of the segments that it reads. Those of other segments may be left out of
memory: only the state stays, which is a few numbers while a segment is settled in order.

    full                              in memory, as its consumers may be there
    more of these than their limit    the oldest goes: written to its index file, and left out
    a message of it is read           loaded from the index file, or else from the records
    more in memory than the limit     full ones go first, then the oldest of those that were loaded
"""

from __future__ import annotations

from harebell.base.ports import Files
from harebell.store.limits import (
    OFFSETS_BYTES,
    OFFSETS_FULL_BYTES,
    OFFSETS_MIN_MESSAGES,
    SCAN_WINDOW_BYTES,
)
from harebell.store.log import segment_index
from harebell.store.log.handles import Handles
from harebell.store.log.segment import Segment


class LoadedOffsets:
    """The offsets in memory, those of the newest segments of logs left aside.

    Args:
        files: the data directory.
        handles: opens segments.
        limit: bytes of memory that they may take.
        smallest: number of messages from which a segment has an index file.
        full_limit: bytes of memory that those of full segments may take that were not loaded: a
            backlog that has no reader needs none.
        indexes: whether index files are read and written.

    Attributes:
        byte_count: bytes of memory that the offsets take.
    """

    def __init__(
        self,
        files: Files,
        handles: Handles,
        limit: int = OFFSETS_BYTES,
        smallest: int = OFFSETS_MIN_MESSAGES,
        full_limit: int = OFFSETS_FULL_BYTES,
        *,
        indexes: bool = True,
    ) -> None:
        self.byte_count = 0
        self._full_bytes = 0
        self._files = files
        self._handles = handles
        self._limit = limit
        # Without index files, loading them again is a search of the records.
        self._full_limit = full_limit if indexes else limit
        self._smallest = smallest
        self._indexes = indexes
        # The seed of the checksums of each segment, in the order in which they got full, or were
        # loaded.
        self._full: dict[Segment, int] = {}
        self._loaded: dict[Segment, int] = {}

    def worth_it(self, segment: Segment) -> bool:
        """True if a segment has enough messages for a file of its own."""
        return segment.positions.count >= self._smallest

    def fill(self, segment: Segment, seed: int) -> None:
        """Count the offsets of a segment that has got full.

        Args:
            segment: it gets no more records.
            seed: where the checksums of its log start from.
        """
        if self.worth_it(segment):
            self._full[segment] = seed
            self._full_bytes += segment.positions.offset_bytes()
            self._count(segment)

    def add(self, segment: Segment, seed: int) -> None:
        """Count the offsets of a full segment that were loaded, as it is read."""
        if segment in self._full or segment in self._loaded or not self.worth_it(segment):
            return
        self._loaded[segment] = seed
        self._count(segment)

    def load(self, segment: Segment, seed: int) -> None:
        """Load the offsets of a segment.

        Raises:
            OSError: the file of the segment cannot be read.
        """
        if not self._load_index(segment, seed):
            segment_index.find_offsets(self._handles.reader(segment), segment, seed)
            self.add(segment, seed)

    def at_hand(self, segment: Segment, seed: int) -> bool:
        """Load the offsets of a segment from its index; False if a long search has to find them."""
        if segment.positions.is_loaded() or segment.end() <= SCAN_WINDOW_BYTES:
            return True
        try:
            return self._load_index(segment, seed)
        except OSError:
            # `read` meets the same error and reports it.
            return True

    def _load_index(self, segment: Segment, seed: int) -> bool:
        file = self._handles.reader(segment)
        if not self._indexes or not segment_index.read(self._files, file, segment, seed):
            return False
        segment.indexed = True
        self.add(segment, seed)
        return True

    def remove(self, segment: Segment) -> None:
        """Forget a segment that is removed."""
        byte_count = segment.positions.offset_bytes()
        if self._full.pop(segment, None) is not None:
            self._full_bytes -= byte_count
            self.byte_count -= byte_count
        elif self._loaded.pop(segment, None) is not None:
            self.byte_count -= byte_count

    def store(self, segment: Segment, seed: int) -> None:
        """Write the index file of a segment, if it has none and its offsets are loaded."""
        if self._indexes and not segment.indexed and segment.positions.is_loaded():
            segment.indexed = segment_index.write(self._files, segment, seed)

    def _count(self, newest: Segment) -> None:
        """Count more offsets, and leave others out of memory if it is too much."""
        self.byte_count += newest.positions.offset_bytes()
        excess = max(self._full_bytes - self._full_limit, self.byte_count - self._limit)
        if excess > 0:
            self._leave_out(self._full, newest, excess)
            self._leave_out(self._loaded, newest, self.byte_count - self._limit)

    def _leave_out(self, segments: dict[Segment, int], newest: Segment, excess: int) -> None:
        """Leave so many bytes out of memory, but not those of the newest segment."""
        left = self.byte_count - excess
        for segment, seed in list(segments.items()) if excess > 0 else ():
            # What is in no file yet cannot be read again.
            if segment is not newest and segment.all_on_disk():
                self.store(segment, seed)
                if self._indexes and not segment.indexed:
                    # The disk refuses. Without its file each read of it would search the segment,
                    # and everybody would wait, so it stays; the next full segment tries again.
                    return
                self.remove(segment)
                segment.positions.drop()
                if self.byte_count <= left:
                    return
