"""Reads a log's messages from its segments, wherever their octets are at the moment."""

from __future__ import annotations

from harebell.base.limits import READ_FIRST_BYTES, READ_MOST_BYTES, READ_PLACES
from harebell.base.message import Message
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.records import is_row, parse, pour, record_octets
from harebell.store.handles import Handles
from harebell.store.segment import HEADER_OCTETS, Segment

_FIRST = READ_FIRST_BYTES
_MOST = READ_MOST_BYTES
_PLACES = READ_PLACES


class Reader:
    """Reads a log for several who are at different places in it, such as a stream's consumers.

    Each place has a block of its own, the ones used last stay.

    Args:
        handles: opens segments.
        seed: where checksums start from.
    """

    __slots__ = ("_blocks", "_current", "_handles", "_seed")

    def __init__(self, handles: Handles, seed: int) -> None:
        self._handles = handles
        self._seed = seed
        self._current = Block()
        self._blocks: list[Block] | None = None

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
        block = self._block(segment, offset)
        return parse(block.data, offset - block.base, self._seed)

    def is_row(self, segment: Segment, offset: int) -> bool:
        """Whether the record at an offset of the file is a row of a batch.

        Raises:
            OSError: the file cannot be read.
        """
        block = self._block(segment, offset)
        return is_row(block.data, offset - block.base)

    def pour(self, segment: Segment, offset: int, position: int, into: BatchBuilder) -> bool:
        """Make the message at an offset a row; False when it is damaged.

        Raises:
            OSError: the file cannot be read.
        """
        if offset >= segment.buffer.start:
            return segment.buffer.pour(offset, position, into)
        flying = segment.flying
        if flying is not None and 0 <= offset - segment.flying_at < len(flying):
            return pour(flying, offset - segment.flying_at, position, -1, into)
        block = self._block(segment, offset)
        return pour(block.data, offset - block.base, position, self._seed, into)

    def _block(self, segment: Segment, offset: int) -> Block:
        """Octets that have the record at an offset."""
        block = self._current
        if not block.has(segment, offset):
            block = self._find(segment, offset)
            if not block.has(segment, offset):
                block.load(self._handles, segment, offset)
        return block

    def forget(self) -> int:
        """Let the blocks go."""
        for block in [self._current, *(self._blocks or ())]:
            self._handles.loaded.remove(block)
        self._current = Block()
        self._blocks = None
        return 0

    def _find(self, segment: Segment, offset: int) -> Block:
        """The block that has a record, or that it follows, or the one that was used longest ago."""
        if self._current.segment is None or self._current.near(segment, offset):
            return self._current
        if self._blocks is None:
            self._blocks = []
        blocks = self._blocks
        for block in blocks:
            if block.has(segment, offset) or block.near(segment, offset):
                found = block
                blocks.remove(block)
                break
        else:
            found = blocks.pop(0) if len(blocks) >= _PLACES else Block()
        blocks.append(self._current)
        self._current = found
        return found


class Block:
    """Octets of one segment, read at once.

    Attributes:
        segment: where they are from; None before the first.
        base: their offset in the file.
        data: the octets.
    """

    __slots__ = ("_ahead", "base", "data", "segment")

    def __init__(self) -> None:
        self.segment: Segment | None = None
        self.base = 0
        self.data = b""
        self._ahead = _FIRST

    def has(self, segment: Segment, offset: int) -> bool:
        """Whether the whole record at an offset is here."""
        if segment is not self.segment or offset < self.base:
            return False
        at = offset - self.base
        size = record_octets(self.data, at)
        return size > 0 and at + size <= len(self.data)

    def near(self, segment: Segment, offset: int) -> bool:
        """Whether the record at an offset follows what is here."""
        end = self.base + len(self.data)
        if segment is self.segment:
            return self.base <= offset <= end
        follows = self.segment is not None and self.segment.positions.end() == segment.first
        return follows and offset <= HEADER_OCTETS

    def load(self, handles: Handles, segment: Segment, offset: int) -> int:
        """Read octets that begin with a record; more of them while they are read in order."""
        self._ahead = min(self._ahead * 4, _MOST) if self.near(segment, offset) else _FIRST
        file = handles.reader(segment)
        # What is being written may not be there yet, so no block goes that far.
        before = segment.flying is not None and offset < segment.flying_at
        left = (segment.flying_at if before else segment.buffer.start) - offset
        data = file.read_at(min(self._ahead, left), offset)
        size = record_octets(data, 0)
        if len(data) < size <= left:
            data = file.read_at(size, offset)
        self.segment = segment
        self.base = offset
        self.data = data
        handles.loaded.add(self, len(data))
        return 0

    def empty(self) -> int:
        """Let the octets go; they can be read again."""
        self.segment = None
        self.data = b""
        return 0
