"""A segment of a log: its file name, header, and the bytes that are not on disk yet.

    <first position, 20 digits>.seg

    0               8     12       16      24     32     40         56       64
    | HBSEG 0 0 1   | crc | before | first | time | seen | identity | suffix | records ...

    magic     8 bytes, "HBSEG" 0 0 and the version, 1
    crc       u32, CRC-32C of the bytes 12 to 63
    before    u32, the end of the records of the segment before this one, in units of 8 bytes
    first     u64, the position of the first message
    time      u64, when the segment was made, in milliseconds since 1970
    seen      u64, every position below it may have been handed out
    identity  16 bytes, of the log: its 32 hexadecimal digits
    suffix    u64, the number behind the dash of the identity; 2^64-1 without one

Numbers are little-endian. Records (`kernels/records.py`) begin at multiples of 8 bytes. While the
segment is written, its bytes are in these places:

| header | written | being written | written early | in the buffer | not used |
                   ^ flying_at                     ^ buffer.start  ^ end      ^ ahead

Unused bytes are written ahead of the records: a sync after overwriting bytes costs half of one
after the file has grown, as the file system need not write size and block map. The bytes are not
zeros, so that a lost sector, which reads as zeros, differs from them.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.c_types import Py, i64
from harebell.base.message import Message
from harebell.base.ports import File
from harebell.kernels.records import RecordBuffer, crc32c
from harebell.kernels.settled_bitmap import SettledBitmap

HEADER_BYTES = 64
SUFFIX = ".seg"
INDEX_SUFFIX = ".idx"
NO_SUFFIX = (1 << 64) - 1

if TYPE_CHECKING:
    from harebell.store.log.large_record import LargeRecord

_MAGIC = b"HBSEG\0\0\1"
_HEADER = Struct("<8sI")
_CHECKED = Struct("<IQQQ16sQ")
_COVERED = 12
_BARE_DIGITS = 32
_ALIGN = 8
_UNUSED = b"not used"


def unused(offset: int, byte_count: int) -> bytes:
    """Return the bytes for space written ahead at an offset."""
    # The text is a function of the offset in the file, so any part of the space can be compared.
    phase = offset % len(_UNUSED)
    return (_UNUSED * (byte_count // len(_UNUSED) + 2))[phase : phase + byte_count]


def seed_of(identity: str) -> int:
    """Return the seed of the checksums of a log."""
    return crc32c(identity.encode("ascii"))


def file_name(first: int) -> str:
    """Return the file name of a segment by its first position; names sort by position."""
    return f"{first:020d}{SUFFIX}"


def first_of(name: str) -> int:
    """Return the position of a file name; -1 for another name."""
    digits = name.removesuffix(SUFFIX)
    return int(digits) if name.endswith(SUFFIX) and digits.isdecimal() else -1


def index_path(path: str) -> str:
    """Return the path of the index of a segment, by the path of the segment."""
    return path.removesuffix(SUFFIX) + INDEX_SUFFIX


def _identity_bytes(identity: str) -> tuple[bytes, int]:
    digits, dash, suffix = identity.partition("-")
    return bytes.fromhex(digits.zfill(_BARE_DIGITS)), int(suffix) if dash else NO_SUFFIX


def encode_header(identity: str, first: int, time: int, seen: int, before: int = 0) -> bytes:
    """Return the 64-byte header of a segment.

    Args:
        identity: of the log.
        first: the position of its first message.
        time: milliseconds since 1970.
        seen: every position below it may have been handed out.
        before: where the records of the segment before it end; 0 without one.
    """
    digits, suffix = _identity_bytes(identity)
    # In units of 8 bytes, so that 32 bits reach 32 GiB.
    checked = _CHECKED.pack(-(-before // _ALIGN), first, time, seen, digits, suffix)
    return _HEADER.pack(_MAGIC, crc32c(checked)) + checked


def decode_header(data: bytes) -> tuple[bytes, int, int, int] | None:
    """Return (identity with suffix, first, seen, before) of a header; None if it is damaged."""
    if len(data) < HEADER_BYTES:
        return None
    magic, crc = _HEADER.unpack_from(data)
    if magic != _MAGIC or crc != crc32c(data[_COVERED:HEADER_BYTES]):
        return None
    before, first, _, seen, identity, suffix = _CHECKED.unpack_from(data, _COVERED)
    return identity + suffix.to_bytes(8, "little"), first, seen, before * _ALIGN


def header_crc(data: bytes) -> int:
    """Return the checksum in a header, which differs from that of any other segment."""
    return int.from_bytes(data[_COVERED - 4 : _COVERED], "little")


def mark_of(identity: str) -> bytes:
    """Return the identity of a log in the form of `decode_header`."""
    digits, suffix = _identity_bytes(identity)
    return digits + suffix.to_bytes(8, "little")


class RecalledMessage(Protocol):
    """A fetched large message that was not taken yet; see `Recalled`."""

    message: Message

    def empty(self) -> int:
        """Release the message; it can be read again."""


class SegmentRecall(Protocol):
    """Reads the large message of a segment in slices; see `Recall`."""

    waiting: list[Callable[[], object]]

    def go_on(self) -> bool:
        """Read a slice; True when the message is complete."""


class Segment:
    """Consecutive records of a log in one file.

    Args:
        directory: of the log.
        first: the position of its first message.
        seed: where checksums start from.

    Attributes:
        exact: whether reading the file would lead to these positions and settlements. Not if it has
            a message that ends with the process, or damage: no index may stand for its records.
        indexed: whether its index file is known to be right; see `segment_index`.
        ahead: the offset where the space written ahead ends; 0 when there is none.
        stretching: space ahead is being written; no early write may happen meanwhile.
        path: of the file.
        positions: where its messages stand, and which are settled.
        buffer: records that no batch has taken yet.
        flying: bytes that a batch is writing; None without any. All other bytes before the
            buffer's can be read from the file.
        flying_at: the offset of the first flying byte.
        fresh: whether the file was created and its directory not synced since.
        large: the only message of the segment, while it is large and not on disk; it ends where
            the buffer begins.
        held: bytes of the segment that the memory gauge counts.
        recall: reads the large message from the disk, in slices; None while it is not read.
        recalled: the large message as read, until it is delivered or released.
        fetchable: whether a recall may be tried; not if the disk refused it, or it is damaged.
        made: whether the file exists, or is being made.
        messages: objects by index, None for a settled one; None where messages are records.
        limit: the size from which the log goes on in another segment.
        targets: the first positions of other segments of which something is settled or counted
            by records here; None for none.
        newest: when its last message came, in milliseconds since 1970.
        reader: the file, open for reading; for the loop alone.
        writer: the file, open for writing; used by the thread that performs a batch only.
    """

    reader: File | None
    writer: File | None

    def __init__(self, directory: str, first: i64, seed: int) -> None:
        self.path = f"{directory}/{file_name(first)}"
        self.first = first
        self.positions = SettledBitmap(first)
        self.buffer = RecordBuffer(0, seed)
        self.flying: bytes | None = None
        self.flying_at: i64 = 0
        self.large: LargeRecord | None = None
        self.recall: SegmentRecall | None = None
        self.recalled: RecalledMessage | None = None
        self.fetchable = True
        self.fresh = False
        self.held: i64 = 0
        self.made = False
        self.messages: list[Any] | None = None
        self.limit: i64 = 0
        self.targets: Py[set[int] | None] = None
        self.newest: i64 = 0
        self.exact = True
        self.indexed = False
        self.ahead: i64 = 0
        self.stretching = False
        self.reader = None
        self.writer = None

    def hold_large(self, large: LargeRecord, seed: int) -> None:
        """Hold its only message, a large one, as an object until it is on disk."""
        self.large = large
        self.buffer = RecordBuffer(large.end, seed)

    def continue_at(self, written: int, seed: int) -> None:
        """Continue an existing file of that size."""
        self.buffer = RecordBuffer(written, seed)
        self.made = True

    def go_on_from(self, before: Segment, seed: int) -> None:
        """Gather in the memory of the segment before it, all of whose records were written."""
        self.buffer, before.buffer = before.buffer, RecordBuffer(before.end(), seed)
        self.buffer.empty_at(0)

    def take(self) -> bytes:
        """Take the bytes of the buffer for writing; they are `flying` until they are on disk."""
        self.flying_at = self.buffer.start
        self.flying = self.buffer.take()
        return self.flying

    def put_back(self, data: bytes, offset: int, seed: int) -> None:
        """Return bytes to the buffer that could not be written."""
        self.buffer = RecordBuffer(offset, seed)
        self.buffer.raw(data)

    def end(self) -> i64:
        """Return the size that the file will have."""
        return self.buffer.start + self.buffer.size

    def on_disk(self) -> int:
        """Return how many bytes were written to the file, while no batch is on its way."""
        if self.large is not None:
            return self.large.offset - len(self.large.before)
        return self.buffer.start

    def all_on_disk(self) -> bool:
        """True if all its bytes are in the file, and no batch is writing to it."""
        return self.made and not self.buffer.size and self.flying is None and self.large is None

    def refer(self, first: int) -> None:
        """Note that records here refer to messages in the segment with this first position."""
        if first != self.first:
            if self.targets is None:
                self.targets = set()
            self.targets.add(first)
