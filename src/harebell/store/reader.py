"""Reads a log's messages from its segments, wherever their octets are at the moment."""

from __future__ import annotations

from harebell.base.limits import READ_FIRST_BYTES, READ_MOST_BYTES
from harebell.base.message import Message
from harebell.kernels.records import parse, record_octets
from harebell.store.handles import Handles
from harebell.store.segment import Segment

_FIRST = READ_FIRST_BYTES
_MOST = READ_MOST_BYTES


class BlockReader:
    """Keeps the block read last, and reads more at a time while it is read in order.

    Args:
        handles: opens segments.
        seed: where checksums start from.
    """

    __slots__ = ("_ahead", "_base", "_block", "_handles", "_seed", "_segment")

    def __init__(self, handles: Handles, seed: int) -> None:
        self._handles = handles
        self._seed = seed
        self._segment: Segment | None = None
        self._base = 0
        self._block = b""
        self._ahead = _FIRST

    def read(self, segment: Segment, offset: int) -> Message | None:
        """The message at an offset; None when it is damaged.

        Raises:
            OSError: the file cannot be read.
        """
        if offset >= segment.buffer.start:
            return segment.buffer.read(offset)
        flying = segment.flying
        if flying is not None and 0 <= offset - segment.flying_at < len(flying):
            return parse(flying, offset - segment.flying_at)
        at = offset - self._base
        if segment is not self._segment or at < 0 or not self._holds(at):
            self._load(segment, offset)
            at = 0
        return parse(self._block, at, self._seed)

    def forget(self) -> int:
        """Let the block go."""
        self._segment = None
        self._block = b""
        self._ahead = _FIRST
        return 0

    def _holds(self, at: int) -> bool:
        """Whether the block has the whole record at an index."""
        size = record_octets(self._block, at)
        return size > 0 and at + size <= len(self._block)

    def _load(self, segment: Segment, offset: int) -> int:
        """Read a block that begins with a record."""
        near = self._base + len(self._block)
        if segment is self._segment and offset <= near < offset + self._ahead:
            self._ahead = min(self._ahead * 4, _MOST)
        elif segment is not self._segment and self._ahead < _MOST:
            self._ahead = _FIRST
        file = self._handles.reader(segment)
        # What is being written may not be there yet, so no block goes that far.
        before = segment.flying is not None and offset < segment.flying_at
        left = (segment.flying_at if before else segment.buffer.start) - offset
        block = file.read_at(min(self._ahead, left), offset)
        size = record_octets(block, 0)
        if len(block) < size <= left:
            block = file.read_at(size, offset)
        self._segment = segment
        self._base = offset
        self._block = block
        return 0
