"""Files of staged batches: write pieces, and find them again at a start.

A file has pieces of one batch, each with a header:

    magic   "HBSP"                                         4 bytes
    length  of the header from `batch` on                  u32, little-endian like all numbers
    check   CRC-32C of these bytes                         u32
    batch                                                  u64
    part, attempt                                          u32, u64
    number  of the piece within the attempt                u32
    rows, size                                             u64, u64
    check   CRC-32C of the piece                           u32
    vhost, user, publisher, columns                        each after its length as u16
    piece   `size` bytes

The header is written after its piece, so a killed process leaves no header without its piece.
Behind the last piece are zeros, as the file may have been another batch's before, and have headers
and pieces of that there (`spare_files.py`). Nothing is synced: the commit of the batch checks the
pieces and reports those lost in a power failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from harebell.base.ports import File, write_all
from harebell.kernels.records import crc32c
from harebell.model.publishing.publishers import STAGED, Key, text_at, texts

_MAGIC = b"HBSP"
_NO_MAGIC = bytes(len(_MAGIC))
_HEAD = Struct("<4sII")
_FIELDS = Struct("<QIQIQQI")
_TEXTS = 4
_HEADER_MAX = _FIELDS.size + _TEXTS * (2 + 65_535)

Attempt = tuple[int, int]
"""The part of a batch, and the attempt to write it."""


class Piece(NamedTuple):
    """A piece of an attempt.

    Args:
        columns: the names of its columns, as sent.
        file: the number of its file.
        start: its offset in the file.
        size: its size in bytes.
        rows: the number of its rows.
        check: the CRC-32C of its bytes.
    """

    columns: str
    file: int
    start: int
    size: int
    rows: int
    check: int


class StoredPiece(NamedTuple):
    """A piece found in a file, with its key.

    Args:
        key: the publisher.
        batch: the number of the batch.
        attempt: the part, and which attempt to write it.
        number: the number of the piece in the attempt.
        piece: the piece, with file number 0.
    """

    key: Key
    batch: int
    attempt: Attempt
    number: int
    piece: Piece


def write_piece(
    file: File,
    offset: int,
    key: Key,
    batch: int,
    attempt: Attempt,
    number: int,
    piece: Piece,
    data: bytes,
) -> int:
    """Write a piece and its header; return the offset of the piece.

    Raises:
        OSError: the write failed.
    """
    fields = _FIELDS.pack(batch, *attempt, number, piece.rows, len(data), piece.check)
    fields += texts(key.vhost, key.user, key.name, piece.columns)
    header = _HEAD.pack(_MAGIC, len(fields), crc32c(fields)) + fields
    start = offset + len(header)
    # The end mark first and the header last: after a kill between two of these writes the file ends
    # before this piece. In a spare file the bytes behind it may be a piece of another batch.
    write_all(file, _NO_MAGIC, start + len(data))
    write_all(file, data, start)
    write_all(file, header, offset)
    return start


def forget_pieces(file: File) -> None:
    """Overwrite the beginning, so that the file has no pieces any more.

    Raises:
        OSError: the write failed.
    """
    write_all(file, _NO_MAGIC, 0)


def pieces_of(file: File) -> Iterator[StoredPiece]:
    """Yield the pieces of a file, up to its end or the first damage.

    Raises:
        OSError: the file cannot be read.
    """
    offset, end = 0, file.size()
    while offset + _HEAD.size <= end:
        magic, length, check = _HEAD.unpack(file.read_at(_HEAD.size, offset))
        if magic != _MAGIC or length < _FIELDS.size or length > _HEADER_MAX:
            return
        fields = file.read_at(length, offset + _HEAD.size)
        start = offset + _HEAD.size + length
        piece = _parsed(fields, start) if crc32c(fields) == check else None
        if piece is None or start + piece.piece.size > end:
            return
        yield piece
        offset = start + piece.piece.size


def _parsed(fields: bytes, start: int) -> StoredPiece | None:
    if len(fields) < _FIELDS.size:
        return None
    batch, part, attempt, number, rows, size, check = _FIELDS.unpack_from(fields)
    offset, names = _FIELDS.size, []
    for _ in range(_TEXTS):
        text, offset = text_at(fields, offset)
        names.append(text.decode(errors="replace"))
    if offset != len(fields):
        return None
    vhost, user, publisher, columns = names
    piece = Piece(columns, 0, start, size, rows, check)
    return StoredPiece(Key(STAGED, vhost, user, publisher), batch, (part, attempt), number, piece)
