"""Open files of segments: a limited number, those used last.

Readers belong to the event loop. Writers belong to the thread that performs a batch; the event loop
closes them between batches.
"""

from __future__ import annotations

import errno

from harebell.base.ports import File, Files
from harebell.store.limits import OPEN_FILES
from harebell.store.log.block_cache import BlockCache
from harebell.store.log.segment import Segment

_FULL = (errno.EMFILE, errno.ENFILE)


class Handles:
    """The open files of a store.

    Args:
        files: opens them.
        limit: the limit of files open for reading, and of files open for writing.

    Attributes:
        blocks: the cache of blocks that were read from them.
    """

    def __init__(self, files: Files, limit: int = OPEN_FILES) -> None:
        self._files = files
        self._limit = limit
        self.blocks = BlockCache()
        self._readers: dict[Segment, None] = {}
        self._writers: dict[Segment, None] = {}

    def allow(self, limit: int) -> None:
        """Change the limit of files open for reading, and of files open for writing."""
        self._limit = limit

    def reader(self, segment: Segment) -> File:
        """Return the segment's file, open for reading.

        Raises:
            OSError: it cannot be opened.
        """
        file: File | None = segment.reader
        if file is None:
            try:
                file = self._files.open(segment.path)
            except OSError as error:
                if error.errno not in _FULL or not self._readers:
                    raise
                # All readers, not one: they are opened again when needed, and sockets need
                # descriptors too.
                self._shrink_readers(0)
                file = self._files.open(segment.path)
            segment.reader = file
            self._readers[segment] = None
            self._shrink_readers(self._limit)
        return file

    def wrote(self, segment: Segment, goes_on: bool) -> None:
        """Note that a batch is done with a segment's writer; `goes_on`: more will be written."""
        self._writers.pop(segment, None)
        if segment.writer is None:
            return
        if not goes_on:
            self._close_writer(segment)
            return
        # Inserted again at the end: the first of the dict is the one not used for longest.
        self._writers[segment] = None
        while len(self._writers) > self._limit:
            oldest = next(iter(self._writers))
            del self._writers[oldest]
            self._close_writer(oldest)

    def close_idle_writers(self) -> bool:
        """Close the writers that no batch has used since they were synced; return False if none.

        A batch calls it when it cannot open more files. Its own writers are not closed: `wrote` is
        called for them afterwards.
        """
        writers = list(self._writers)
        self._writers.clear()
        for segment in writers:
            self._close_writer(segment)
        return bool(writers)

    def close(self, segment: Segment) -> None:
        """Close the files of a removed segment."""
        self._writers.pop(segment, None)
        self.close_reader(segment)
        self._close_writer(segment)

    def close_reader(self, segment: Segment) -> None:
        """Close the reader of a segment that is about to be removed.

        The last close of a removed file frees its blocks, which takes milliseconds for a large one.
        So the event loop closes it before it is removed.
        """
        self._readers.pop(segment, None)
        file, segment.reader = segment.reader, None
        if file is not None:
            file.close()

    def close_all(self) -> None:
        """Close all files."""
        for segment in [*self._readers, *self._writers]:
            self.close(segment)

    def _shrink_readers(self, limit: int) -> None:
        while len(self._readers) > limit:
            oldest = next(iter(self._readers))
            del self._readers[oldest]
            file, oldest.reader = oldest.reader, None
            if file is not None:
                file.close()

    def _close_writer(self, segment: Segment) -> None:
        file, segment.writer = segment.writer, None
        if file is not None:
            file.close()
