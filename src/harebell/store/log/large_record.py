"""Records of large messages, written and read without a copy of the body.

Copying 50 MiB into a buffer, or out of a block that was read, takes 30 ms, in which the event loop
serves no other connection. So a large message stays an object until it is on disk, in a segment
without other messages:

    | bytes before it | head, names, properties | body | padding | bytes behind it |
      before            prefix                    of the message   the segment's buffer
"""

from __future__ import annotations

from struct import Struct

from harebell.base.message import Message, Properties, copy_message, new_message
from harebell.base.ports import File
from harebell.kernels.records import RecordBuffer, body_start, crc32c, parse, record_size

_ALIGN = 8
_SUM = Struct("<II")
_COVERED = _SUM.size
_PREFIX_MAX = 65_536


class LargeRecord:
    """A large message that is not on disk yet.

    Args:
        before: bytes before the record that are not written yet.
        offset: the offset of the record in the file.
        seed: the initial value of the checksum.
        position: the position of the message.
        time: milliseconds since 1970.
        message: what the record is made of.
        keep: as for `RecordBuffer.message`.

    Attributes:
        before, message: as given.
        end: the offset behind the record.
    """

    __slots__ = ("_padding", "_prefix", "_time", "before", "end", "message", "offset")

    def __init__(
        self,
        before: bytes,
        offset: int,
        seed: int,
        position: int,
        time: int,
        message: Message,
        keep: int,
    ) -> None:
        buffer = RecordBuffer(0, seed)
        # Encoded with an empty body, then size and checksum are replaced by those with the body.
        buffer.message(position, time, with_body(message, b""), keep)
        data = buffer.take()
        head = data[_COVERED : record_size(data, 0)]
        size = _COVERED + len(head) + len(message.body)
        total = crc32c(message.body, crc32c(head, seed))
        self.before = before
        self._prefix = _SUM.pack(size, total) + head
        self._padding = bytes(-size % _ALIGN)
        self.message = message
        self._time = time
        self.offset = offset
        self.end = offset + size + len(self._padding)

    def pieces(self) -> list[tuple[int, bytes]]:
        """Return the writes: offsets in the file, and data."""
        pieces = []
        offset = self.offset - len(self.before)
        for data in (self.before, self._prefix, self.message.body, self._padding):
            if data:
                pieces.append((offset, data))
            offset += len(data)
        return pieces

    def read(self) -> Message:
        """Return the message as it would be read from disk."""
        message = copy_message(self.message, self.message.exchange, self.message.routing_key)
        message.timestamp = self._time
        message.offset = -1
        message.origin = 0
        return message


class LargeReader:
    """Reads a large message in pieces.

    Args:
        file: the file of the segment.
        offset: the offset of the record.
        size: the size of the record, according to its head.
        seed: the initial value of the checksum.

    Attributes:
        remaining: bytes of the body that are not read yet.

    Raises:
        OSError: the file cannot be read.
        ValueError: the record is damaged.
    """

    def __init__(self, file: File, offset: int, size: int, seed: int) -> None:
        data = file.read_at(min(size, _PREFIX_MAX), offset)
        start = body_start(data, 0)
        if start > len(data):
            data = file.read_at(min(size, start), offset)
        if not 0 < start <= min(size, len(data)):
            raise ValueError("the head of a large record is damaged")
        _, self._claimed = _SUM.unpack_from(data)
        self._head = data[_COVERED:start]
        self._sum = crc32c(self._head, seed)
        self._offset = offset + start
        self.remaining = size - start

    def read(self, file: File, byte_count: int) -> bytes:
        """Read the next bytes of the body.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file ends too early.
        """
        piece = file.read_at(min(byte_count, self.remaining), self._offset)
        if not piece and self.remaining:
            raise ValueError("the body of a large record is cut off")
        self._sum = crc32c(piece, self._sum)
        self._offset += len(piece)
        self.remaining -= len(piece)
        return piece

    def message(self, body: bytes) -> Message:
        """Return the message with the given body, which is all that was read.

        Raises:
            ValueError: the record is damaged.
        """
        # The head alone is a record without a body.
        head = _SUM.pack(_COVERED + len(self._head), 0) + self._head
        parsed = parse(head, 0) if self._sum == self._claimed else None
        if parsed is None:
            raise ValueError("the checksum of a large record is wrong")
        return with_body(parsed, body)


def read_large(file: File, offset: int, size: int, seed: int) -> Message | None:
    """Read a large message at once; return None if it is damaged.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        reader = LargeReader(file, offset, size, seed)
        body = reader.read(file, reader.remaining)
        return reader.message(body) if not reader.remaining else None
    except ValueError:
        return None


def with_body(message: Message, body: bytes) -> Message:
    """Return a copy of a message with another body.

    What a record has is kept: arrival time, expiry, failed deliveries. Marks of a delivery are not.
    """
    properties = Properties(
        message.raw,
        message.delivery_mode,
        message.priority,
        message.has_headers,
        family=message.family,
    )
    copy = new_message(message.exchange, message.routing_key, properties, body)
    copy.timestamp = message.timestamp
    copy.due = message.due
    copy.deliveries = message.deliveries
    return copy
