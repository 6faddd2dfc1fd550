"""The files of staged batches, and how a start finds again what is in them.

A file has pieces of one batch, each behind a header that says what it is:

    magic   "HBSP"                                         4 octets
    length  of the header from `batch` on                  u32, little-endian like all numbers
    check   CRC-32C of these octets                        u32
    batch                                                  u64
    part, attempt                                          u32, u64
    number  of the piece within the attempt                u32
    rows, size                                             u64, u64
    check   CRC-32C of the piece                           u32
    vhost, user, publisher, columns                        each behind its length as u16
    piece   `size` octets

The header is written after its piece, so a process that is killed leaves no header without one.
Nothing is synced: what a power loss takes is missing when the batch is committed, and is named.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from harebell.base.ports import File
from harebell.kernels.records import crc32c
from harebell.model.publishers import STAGED, Key, text_at, texts

_MAGIC = b"HBSP"
_HEAD = Struct("<4sII")
_FIELDS = Struct("<QIQIQQI")
_TEXTS = 4
_HEADER_MOST = _FIELDS.size + _TEXTS * (2 + 65_535)

Attempt = tuple[int, int]
"""A part of a batch, and which attempt to write it."""


class Piece(NamedTuple):
    """A piece of an attempt.

    Args:
        columns: what its sender calls its columns.
        file: the number of the file that it is in.
        start: where it stands there.
        size: its octets.
        rows: how many it has.
        check: of its octets.
    """

    columns: str
    file: int
    start: int
    size: int
    rows: int
    check: int


class Found(NamedTuple):
    """A piece of a file, and what it is a piece of.

    Args:
        key: the publisher.
        batch: its number.
        attempt: the attempt.
        number: of the piece within the attempt.
        piece: the piece, as if the file were the first one of its batch.
    """

    key: Key
    batch: int
    attempt: Attempt
    number: int
    piece: Piece


def write_piece(
    file: File,
    at: int,
    key: Key,
    batch: int,
    attempt: Attempt,
    number: int,
    piece: Piece,
    data: bytes,
) -> int:
    """Write a piece behind its header; returns where the piece begins.

    Raises:
        OSError: the disk refuses.
    """
    fields = _FIELDS.pack(batch, *attempt, number, piece.rows, len(data), piece.check)
    fields += texts(key.vhost, key.user, key.name, piece.columns)
    header = _HEAD.pack(_MAGIC, len(fields), crc32c(fields)) + fields
    _write(file, data, at + len(header))
    _write(file, header, at)
    return at + len(header)


def pieces_of(file: File) -> Iterator[Found]:
    """The pieces of a file, up to where it is damaged or ends.

    Raises:
        OSError: the file cannot be read.
    """
    at, end = 0, file.size()
    while at + _HEAD.size <= end:
        magic, length, check = _HEAD.unpack(file.read_at(_HEAD.size, at))
        if magic != _MAGIC or length < _FIELDS.size or length > _HEADER_MOST:
            return
        fields = file.read_at(length, at + _HEAD.size)
        start = at + _HEAD.size + length
        found = _parsed(fields, start) if crc32c(fields) == check else None
        if found is None or start + found.piece.size > end:
            return
        yield found
        at = start + found.piece.size


def _parsed(fields: bytes, start: int) -> Found | None:
    if len(fields) < _FIELDS.size:
        return None
    batch, part, attempt, number, rows, size, check = _FIELDS.unpack_from(fields)
    at, names = _FIELDS.size, []
    for _ in range(_TEXTS):
        text, at = text_at(fields, at)
        names.append(text.decode(errors="replace"))
    if at != len(fields):
        return None
    vhost, user, publisher, columns = names
    piece = Piece(columns, 0, start, size, rows, check)
    return Found(Key(STAGED, vhost, user, publisher), batch, (part, attempt), number, piece)


def _write(file: File, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        done = file.write_at(rest, offset)
        if done <= 0:
            raise OSError(errno.ENOSPC, "nothing could be written")
        rest = rest[done:]
        offset += done
