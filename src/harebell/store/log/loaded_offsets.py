"""Which full segments have the offsets of their records in memory, within a limit for all logs.

A log needs the offsets of the segments that it reads. Those of other segments may be left out of
memory: only the state stays, which is a few numbers while a segment is settled in order.

    full, or read after a start       in memory
    more in memory than the limit     the oldest goes: written to its index file, and left out
    a message of it is read           loaded from the index file, or else from the records
"""

from __future__ import annotations

from harebell.base.ports import Files
from harebell.store.limits import OFFSETS_BYTES, OFFSETS_MIN_MESSAGES, SCAN_WINDOW_BYTES
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
        *,
        indexes: bool = True,
    ) -> None:
        self.byte_count = 0
        self._files = files
        self._handles = handles
        self._limit = limit
        self._smallest = smallest
        self._indexes = indexes
        # The seed of the checksums of each segment, in the order in which they were loaded.
        self._seeds: dict[Segment, int] = {}

    def worth_it(self, segment: Segment) -> bool:
        """True if a segment has enough messages for a file of its own."""
        return segment.positions.count >= self._smallest

    def add(self, segment: Segment, seed: int) -> None:
        """Count the offsets of a full segment, and leave others out of memory if it is too much.

        Args:
            segment: its offsets are loaded, and it gets no more records.
            seed: where the checksums of its log start from.
        """
        if segment in self._seeds or not self.worth_it(segment):
            return
        self._seeds[segment] = seed
        self.byte_count += segment.positions.offset_bytes()
        if self.byte_count > self._limit:
            self._shrink(segment)

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
        if self._seeds.pop(segment, None) is not None:
            self.byte_count -= segment.positions.offset_bytes()

    def store(self, segment: Segment, seed: int) -> None:
        """Write the index file of a segment, if it has none and its offsets are loaded."""
        if self._indexes and not segment.indexed and segment.positions.is_loaded():
            segment.indexed = segment_index.write(self._files, segment, seed)

    def _shrink(self, newest: Segment) -> None:
        for segment, seed in list(self._seeds.items()):
            # What is in no file yet cannot be read again.
            if segment is not newest and segment.all_on_disk():
                self.store(segment, seed)
                if self._indexes and not segment.indexed:
                    # The disk refuses. Without its file each read of it would search the segment,
                    # and everybody would wait, so it stays; the next full segment tries again.
                    return
                self.remove(segment)
                segment.positions.drop()
                if self.byte_count <= self._limit:
                    return
