"""Read messages from segments: from buffers that are not written yet, or from disk."""

from __future__ import annotations

from harebell.base.c_types import C, Done, i64, isize, u32
from harebell.base.message import Message, copy_message
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.limits import LARGE_RECORD_BYTES
from harebell.kernels.records import append_to, is_row, parse, record_size
from harebell.store.limits import READ_FIRST_BYTES, READ_MAX_BYTES, READ_PLACES
from harebell.store.log.handles import Handles
from harebell.store.log.large_record import read_large
from harebell.store.log.recall import Recalled
from harebell.store.log.segment import HEADER_BYTES, Segment

_FIRST: isize = READ_FIRST_BYTES
_MAX: isize = READ_MAX_BYTES
_PLACES = READ_PLACES
_LARGE: isize = LARGE_RECORD_BYTES


class Reader:
    """Reads a log at several offsets at once, such as those of a stream's consumers.

    Each offset has a block of its own; the blocks used last are kept.

    Args:
        handles: opens segments.
        seed: the initial value of checksums.
    """

    def __init__(self, handles: Handles, seed: u32) -> None:
        self._handles = handles
        self._seed = seed
        self._current = Block()
        self._blocks: list[Block] | None = None

    def read(self, segment: Segment, offset: i64) -> C[Message | None]:
        """Return the message at an offset; None if it is damaged.

        Raises:
            OSError: the file cannot be read.
        """
        if offset < 0:
            # Its record was damaged when the offsets were read from the segment again.
            return None
        if offset >= segment.buffer.start:
            # Bytes that never left memory need no checksum: only what comes from the disk is
            # checked.
            return segment.buffer.read(offset)
        if segment.large is not None and offset == segment.large.offset:
            return segment.large.read()
        if segment.recalled is not None and segment.positions.count == 1:
            message: Message = segment.recalled.message
            return copy_message(message, message.exchange, message.routing_key)
        flying: bytes | None = segment.flying
        if flying is not None and 0 <= offset - segment.flying_at < len(flying):
            return parse(flying, offset - segment.flying_at)
        block = self._block(segment, offset)
        if block.large:
            return self._read_large(segment, offset, block)
        return parse(block.data, offset - block.base, self._seed)

    def _read_large(self, segment: Segment, offset: i64, block: Block) -> C[Message | None]:
        """Return a message that is larger than a block; the block has its head."""
        size = record_size(block.data, 0)
        # A damaged head may claim any size; it must not allocate more than the segment has.
        if size > segment.buffer.start - offset:
            return None
        message = read_large(self._handles.reader(segment), offset, size, self._seed)
        if message is not None and segment.positions.count == 1:
            # A queue may read a message again before it delivers it.
            segment.recalled = Recalled(segment, message)
            self._handles.blocks.add(segment.recalled, size)
        return message

    def is_row(self, segment: Segment, offset: int) -> bool:
        """True if the record at an offset of the file is a row of a staged batch.

        Raises:
            OSError: the file cannot be read.
        """
        if offset < 0:
            return False
        block = self._block(segment, offset)
        return is_row(block.data, offset - block.base)

    def append_to(
        self, segment: Segment, offset: i64, position: i64, into: BatchBuilder
    ) -> C[bool]:
        """Add the message at an offset to a batch as a row; return False if it is damaged.

        Raises:
            OSError: the file cannot be read.
        """
        if offset < 0:
            return False
        if offset >= segment.buffer.start:
            return segment.buffer.append_to(offset, position, into)
        if segment.large is not None and offset == segment.large.offset:
            into.message(segment.large.read(), position)
            return True
        flying: bytes | None = segment.flying
        if flying is not None and 0 <= offset - segment.flying_at < len(flying):
            return append_to(flying, offset - segment.flying_at, position, -1, into)
        block = self._block(segment, offset)
        if block.large:
            message = self._read_large(segment, offset, block)
            if message is not None:
                into.message(message, position)
            return message is not None
        return append_to(block.data, offset - block.base, position, self._seed, into)

    def _block(self, segment: Segment, offset: i64) -> C[Block]:
        """Return a block with the record at an offset."""
        block = self._current
        if not block.has(segment, offset):
            block = self._find(segment, offset)
            if not block.has(segment, offset):
                block.load(self._handles, segment, offset)
        return block

    def forget(self) -> Done:
        """Release the blocks."""
        block: Block
        for block in [self._current, *(self._blocks or ())]:
            self._handles.blocks.remove(block)
        self._current = Block()
        self._blocks = None
        return 0

    def _find(self, segment: Segment, offset: i64) -> C[Block]:
        """Return the block with a record, or one just before it, or the least recently used one."""
        if self._current.segment is None or self._current.near(segment, offset):
            return self._current
        if self._blocks is None:
            self._blocks = []
        blocks = self._blocks
        block: Block
        for block in blocks:
            if block.has(segment, offset) or block.near(segment, offset):
                blocks.remove(block)
                break
        else:
            block = blocks.pop(0) if len(blocks) >= _PLACES else Block()
        blocks.append(self._current)
        self._current = block
        return block


class Block:
    """Consecutive bytes of one segment.

    Attributes:
        segment: their segment; None for an empty block.
        base: their offset in the file.
        data: the bytes.
        large: whether they are only the head of a large record.
    """

    def __init__(self) -> None:
        self.segment: Segment | None = None
        self.base: i64 = 0
        self.data = b""
        self.large = False
        self._ahead: isize = _FIRST

    def has(self, segment: Segment, offset: i64) -> C[bool]:
        """True if the block has the whole record at an offset, or the head of a large one."""
        if segment is not self.segment or offset < self.base:
            return False
        if self.large:
            return offset == self.base
        index: i64 = offset - self.base
        size: isize = record_size(self.data, index)
        return size > 0 and index + size <= len(self.data)

    def near(self, segment: Segment, offset: i64) -> C[bool]:
        """True if the record at an offset follows this block."""
        end = self.base + len(self.data)
        if segment is self.segment:
            return self.base <= offset <= end
        follows = self.segment is not None and self.segment.positions.end() == segment.first
        return follows and offset <= HEADER_BYTES

    def load(self, handles: Handles, segment: Segment, offset: i64) -> Done:
        """Read bytes that begin with a record; more of them if the segment is read in order."""
        # Four times as much with each read in order: a few large reads where a backlog is
        # delivered, and little waste where single messages are read.
        self._ahead = min(self._ahead * 4, _MAX) if self.near(segment, offset) else _FIRST
        file = handles.reader(segment)
        # Bytes that are being written may not be in the file yet, so a block ends before them.
        before = segment.flying is not None and offset < segment.flying_at
        readable = (segment.flying_at if before else segment.buffer.start) - offset
        data = file.read_at(min(self._ahead, readable), offset)
        size = record_size(data, 0)
        self.large = size >= _LARGE
        if len(data) < size <= readable and not self.large:
            data = file.read_at(size, offset)
        self.segment = segment
        self.base = offset
        self.data = data
        handles.blocks.add(self, len(data))
        return 0

    def empty(self) -> Done:
        """Release the bytes; they can be read again."""
        self.segment = None
        self.data = b""
        self.large = False
        return 0
