"""Encode the records of the message log into a growing buffer, read and check them.

    offset 0    u32  size of the record, without the padding to a multiple of 8 bytes
           4    u32  CRC-32C of the bytes from 8 to size, continued from that of the log's identity
           8    u64  position
           16   u64  time, in milliseconds since 1970
           24   u8   kind: 1 message, 2 settled, 3 seen, 4 count, 5 closed
           25   u8   flags: 1 headers, 2 priority, 4 survives a restart, 8 due, 16 staged row
           26   u8   delivery mode
           27   u8   priority
           28   u8   length of the exchange's name
           29   u8   length of the routing key
           30   u8   family of the properties: FAMILY_09 or another of `base/message.py`
           31   u8   failed deliveries of a dead letter in the queues where it died
           32   u32  length of the properties
           36        with flag 8 due, u64; exchange, routing key, properties, body

Numbers are little-endian. In records of other kinds the bytes 25 to 35 are zero, and the payload
begins at 36. `store/FORMAT.md` says what each kind means. `records.pyx` beside this file is the
same, compiled; both agree byte for byte.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import google_crc32c

from harebell.base.limits import CARRIED_DELIVERIES
from harebell.base.message import Message, Properties, new_message

HEAD_BYTES = 36
MESSAGE = 1
SETTLED = 2
SEEN = 3
COUNT = 4
CLOSED = 5
STAGED = 16
"""The message is a row of a batch."""

_ALIGN = 8
_HAS_HEADERS = 1
_HAS_PRIORITY = 2
_KEEP = 4
_DUE = 8
_COVERED = 8
_KIND_AT = 24
_FLAGS_AT = 25
_NAME_MAX = 255
_HEAD = Struct("<IIQQBBBBBBBBI")
_CHECKED = Struct("<QQBBBBBBBBI")
_FIXED = Struct("<II")
_TIME = Struct("<Q")
_PAD = bytes(_ALIGN)


def crc32c(data: bytes | memoryview, crc: int = 0) -> int:
    """CRC-32C (Castagnoli) of octets, continued from `crc`."""
    crc32c: int = google_crc32c.extend(crc, bytes(data))
    return crc32c


class RecordBuffer:
    """Records that wait to be written.

    Args:
        start: the offset of the first byte in the file.
        seed: the initial value of every checksum.

    Attributes:
        start: as given.
        size: octets gathered.
    """

    def __init__(self, start: int, seed: int) -> None:
        self.start = start
        self._seed = seed
        self._data = bytearray()

    @property
    def size(self) -> int:
        """Octets gathered."""
        return len(self._data)

    def raw(self, data: bytes) -> int:
        """Append bytes that are no record, such as a segment's header: a multiple of eight."""
        self._data += data
        return 0

    def message(self, position: int, time: int, message: Message, keep: int) -> int:
        """Append a message's record; returns its offset in the file.

        Args:
            position: its position in the log.
            time: milliseconds since 1970.
            message: the message that the record stores.
            keep: 0 if the message ends with the process, 1 if a restart keeps it; with STAGED it
                is a row of a batch as well.
        """
        exchange, key = message.exchange.encode(), message.routing_key.encode()
        # Their lengths have one byte each in the record.
        if max(len(exchange), len(key)) > _NAME_MAX:
            raise ValueError(f"a name has at most {_NAME_MAX} octets")
        priority = message.priority
        flags = (
            _HAS_HEADERS * message.has_headers
            | _HAS_PRIORITY * (priority >= 0)
            | _KEEP * bool(keep)
            | keep & STAGED
            | _DUE * (message.due > 0)
        )
        head = _CHECKED.pack(
            position,
            time,
            MESSAGE,
            flags,
            message.delivery_mode,
            max(priority, 0),
            len(exchange),
            len(key),
            message.family,
            min(message.deliveries, CARRIED_DELIVERIES),
            len(message.raw),
        )
        due = _TIME.pack(message.due) if message.due > 0 else b""
        return self._add(b"".join((head, due, exchange, key, message.raw, message.body)))

    def rows(
        self,
        position: int,
        time: int,
        rows: Any,
        first: int,
        end: int,
        keep: int,
        limit: int,
        positions: Any,
    ) -> int:
        """Append the records of rows that differ in their bodies only.

        Args:
            position: of the first row in the log.
            time: milliseconds since 1970.
            rows: the loaded batch, a `Rows`.
            first: the first row.
            end: the row behind the last.
            keep: as in `message`.
            limit: size of the buffer from which no further row is appended.
            positions: a `SettledBitmap` that gets the offset of each record.

        Returns:
            How many rows were appended.
        """
        row = first
        # One row in any case: a single one may be larger than the limit.
        while row < end and (row == first or self.size < limit):
            at = self.message(position + row - first, time, rows.message(row), keep)
            positions.add(at)
            row += 1
        return row - first

    def note(self, kind: int, position: int, time: int, payload: bytes) -> int:
        """Append a record of another kind; returns its offset in the file."""
        return self._add(_CHECKED.pack(position, time, kind, *[0] * 8) + payload)

    def _add(self, checked: bytes) -> int:
        offset = self.start + len(self._data)
        size = len(checked) + _COVERED
        # The checksum does not cover the size: with a wrong size, other bytes are summed up.
        self._data += _FIXED.pack(size, crc32c(checked, self._seed))
        self._data += checked
        self._data += _PAD[: -size % _ALIGN]
        return offset

    def read(self, offset: int) -> Message | None:
        """The message at an offset of the file that lies in this buffer."""
        return parse(bytes(self._data), offset - self.start)

    def append_to(self, offset: int, position: int, into: Any) -> bool:
        """Make the record at an offset of the file a row of a `BatchBuilder`; False for none."""
        at = offset - self.start
        if at < 0:
            return False
        # A copy of this record only: the buffer may hold megabytes.
        record = bytes(self._data[at : at + record_size(self._data, at)])
        return append_to(record, 0, position, -1, into)

    def view(self) -> memoryview:
        """Return everything without a copy, for a write before the buffer is changed."""
        return memoryview(self._data)

    def empty_at(self, start: int) -> int:
        """Empty the buffer, which keeps its memory; the next record goes to that offset."""
        self._data.clear()
        self.start = start
        return 0

    def take(self) -> bytes:
        """Return everything and empty the buffer, which gives its memory away.

        The next record follows in the file.
        """
        data = bytes(self._data)
        self._data.clear()
        self.start += len(data)
        return data


def message_size(message: Message) -> int:
    """Return the size of a message's record in a file.

    Raises:
        ValueError: a name is too long for a record.
    """
    names = len(message.exchange.encode()), len(message.routing_key.encode())
    if max(names) > _NAME_MAX:
        raise ValueError(f"a name has at most {_NAME_MAX} octets")
    due = _TIME.size if message.due > 0 else 0
    size = HEAD_BYTES + due + sum(names) + len(message.raw) + len(message.body)
    return size + -size % _ALIGN


def record_size(data: bytes | bytearray, at: int) -> int:
    """Return the size in the head of the record at an index; 0 if the head is incomplete."""
    if at < 0 or at + 4 > len(data):
        return 0
    return int.from_bytes(data[at : at + 4], "little")


def good(data: bytes, at: int, seed: int) -> bool:
    """True if there is a whole record with the right checksum at an index."""
    size = record_size(data, at)
    if size < HEAD_BYTES or at + size > len(data):
        return False
    claimed = int.from_bytes(data[at + 4 : at + 8], "little")
    return crc32c(data[at + _COVERED : at + size], seed) == claimed


def head(data: bytes, at: int) -> tuple[int, int, int, int]:
    """(position, time, kind, size) of the record at an index, which must be `good`."""
    size, _, position, time, kind, *_ = _HEAD.unpack_from(data, at)
    return position, time, kind, size


def is_row(data: bytes, at: int) -> bool:
    """Whether the record at an index is a row of a batch."""
    return len(data) >= at + HEAD_BYTES and bool(data[at + _FLAGS_AT] & STAGED)


def payload(data: bytes, at: int) -> bytes:
    """What follows the fixed part of the record at an index, which must be `good`."""
    return data[at + HEAD_BYTES : at + record_size(data, at)]


def body_start(data: bytes, at: int) -> int:
    """Return the size of a message's record before its body; 0 if the head is incomplete."""
    if at < 0 or at + HEAD_BYTES > len(data) or data[at + _KIND_AT] != MESSAGE:
        return 0
    _, _, _, _, _, flags, _, _, exchange, key, _, _, properties = _HEAD.unpack_from(data, at)
    due = _TIME.size if flags & _DUE else 0
    return int(HEAD_BYTES + due + exchange + key + properties)


def parse(data: bytes, at: int, seed: int = -1) -> Message | None:
    """The message at an index; None when there is no whole, right one.

    Args:
        data: octets of a segment.
        at: where the record begins.
        seed: where checksums start from; -1 trusts the record.
    """
    size = record_size(data, at)
    if size < HEAD_BYTES or at + size > len(data) or (seed >= 0 and not good(data, at, seed)):
        return None
    _, _, _, time, kind, flags, mode, priority, exchange, key, family, deliveries, properties = (
        _HEAD.unpack_from(data, at)
    )
    start = at + HEAD_BYTES + (_TIME.size if flags & _DUE else 0)
    # Lengths within the record may be wrong where the checksum was not compared.
    if kind != MESSAGE or start + exchange + key + properties > at + size:
        return None
    try:
        name = data[start : start + exchange].decode()
        routing_key = data[start + exchange : start + exchange + key].decode()
    except UnicodeDecodeError:
        return None
    raw = data[start + exchange + key : start + exchange + key + properties]
    body = data[start + exchange + key + properties : at + size]
    found = Properties(
        raw,
        mode,
        priority if flags & _HAS_PRIORITY else -1,
        bool(flags & _HAS_HEADERS),
        family=family,
    )
    message = new_message(name, routing_key, found, body)
    message.timestamp = time
    message.deliveries = deliveries
    if flags & _DUE:
        (message.due,) = _TIME.unpack_from(data, at + HEAD_BYTES)
    return message


def append_to(data: bytes, at: int, position: int, seed: int, into: Any) -> bool:
    """Make the message at an index a row; False when there is no whole, right one.

    Args:
        data: octets of a segment.
        at: where the record begins.
        position: of the message.
        seed: where checksums start from; -1 trusts the record.
        into: a `BatchBuilder`.
    """
    message = parse(data, at, seed)
    if message is None:
        return False
    into.message(message, position)
    return True


def find_good(data: bytes, begin: int, seed: int, low: int, high: int) -> int:
    """The first index from `begin` on, a multiple of eight, with a good record; -1 without one.

    Args:
        data: octets of a segment, beginning at a multiple of eight of the file.
        begin: where to begin.
        seed: where checksums start from.
        low: the smallest position that the record may have.
        high: the largest one.
    """
    # Records begin at multiples of eight; the checksum, which costs most, comes last.
    for at in range(begin, len(data) - HEAD_BYTES + 1, _ALIGN):
        size, _, position, *_ = _HEAD.unpack_from(data, at)
        if size >= HEAD_BYTES and low <= position <= high and good(data, at, seed):
            return at
    return -1


def scan(data: bytes, at: int, base: int, seed: int, positions: Any) -> tuple[int, int]:
    """Read consecutive good messages from an index on.

    Args:
        data: octets of a segment, beginning at offset `base` of the file.
        at: where the first record begins.
        base: the offset of `data` in the file.
        seed: where checksums start from.
        positions: a `SettledBitmap`. Every message is added; one that is not kept is settled.

    Returns:
        The index of the first record that is not a message with the next position, and the time of
        the last one that was (0 without any).
    """
    newest = 0
    while at + HEAD_BYTES <= len(data) and good(data, at, seed):
        size, _, position, time, kind, flags, *_ = _HEAD.unpack_from(data, at)
        if kind != MESSAGE or position != positions.end():
            break
        positions.add(base + at)
        if not flags & _KEEP:
            positions.settle(position)
        newest = time
        at += size + -size % _ALIGN
    return at, newest
