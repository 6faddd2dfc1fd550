"""Encode the changes of a data directory, so that they can be made again elsewhere.

    row       version u8 (1), zero, zero, zero, CRC-32C of the rest u32, changes
    change    kind u8, number u64, length of the name u16, length of the data u64, name, data

| kind       | number        | name              | data                                          |
|------------|---------------|-------------------|-----------------------------------------------|
| WRITE      | offset        | path              | the bytes                                     |
| TRUNCATE   | size          | path              |                                               |
| REMOVE     |               | path              |                                               |
| RENAME     |               | path              | the new path                                  |
| RMDIR      |               | path              |                                               |
| DEFINITION | 1 put, 0 drop | kind ("queue")    | the values of the row, MessagePack            |
| MARK       | 1 clean       |                   |                                               |
| SNAPSHOT   |               |                   | the whole database of definitions             |
| ALIVE      |               |                   | paths and sizes of all files, MessagePack     |
| CLAIM      | epoch         | name of the owner |                                               |
| END        |               |                   |                                               |

Every change may be made twice, if all that follow are made again too. Numbers are little-endian.
`row_compression.py` has the format of compressed rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct, error
from typing import NamedTuple

from harebell.base.errors import StoreError
from harebell.kernels.records import crc32c
from harebell.store.journal.row_compression import COMPRESSED, decompressed

WRITE, TRUNCATE, REMOVE, RENAME, RMDIR = 1, 2, 3, 4, 5
DEFINITION, MARK, SNAPSHOT = 6, 7, 8
ALIVE, CLAIM, END = 9, 10, 11

_VERSION = 1
_ROW = Struct("<B3xI")
_CHANGE = Struct("<BQHQ")
HEAD_BYTES = _ROW.size
"""Bytes of a row before its changes, which its checksum does not cover."""


class RowDamage(StoreError):
    """A row is not what was written."""


class Change(NamedTuple):
    """One change; the table above explains its parts."""

    kind: int
    number: int = 0
    name: str = ""
    data: bytes | memoryview = b""


def encode(changes: Iterable[Change]) -> bytes:
    """Encode changes as the content of a row."""
    # The head is known last, and everything is copied once.
    parts: list[bytes | memoryview] = [b""]
    crc = 0
    for kind, number, name, data in changes:
        path = name.encode()
        head = _CHANGE.pack(kind, number, len(path), len(data)) + path
        crc = crc32c(data, crc32c(head, crc))
        parts.append(head)
        parts.append(data)
    parts[0] = _ROW.pack(_VERSION, crc)
    return b"".join(parts)


def plain(content: bytes, where: str) -> bytes:
    """Return the content of a row before compression.

    Args:
        content: of the row.
        where: what the row is, for errors.

    Raises:
        RowDamage: the row is damaged.
        StoreError: LZ4 is not installed.
    """
    if content[:1] != bytes((COMPRESSED,)):
        return content
    try:
        return decompressed(content)
    except ValueError:
        raise _damaged(where) from None


def decode(content: bytes, where: str) -> Iterator[Change]:
    """Yield the changes of a row.

    Args:
        content: of the row, before compression.
        where: what the row is, for errors.

    Raises:
        RowDamage: the row is damaged.
        StoreError: a newer version wrote the row.
    """
    if len(content) < _ROW.size:
        raise _damaged(where)
    version, crc = _ROW.unpack_from(content)
    if crc32c(content[_ROW.size :]) != crc:
        raise _damaged(where)
    if version != _VERSION:
        # The checksum does not cover the version. If the rest is a whole row of this version, a
        # flipped bit is more likely than a newer version with the same format.
        if list(_whole_changes(content)) and content[1:4] == bytes(3):
            raise _damaged(where)
        raise StoreError(
            f"{where} has format {version}, and this version of Harebell reads {_VERSION}: use the "
            "version that wrote it"
        )
    return changes_of(memoryview(content))


def changes_of(view: memoryview) -> Iterator[Change]:
    """Yield the changes of a row of this version, whose checksum is not compared.

    Raises:
        ValueError: the rest of the row is no change.
    """
    offset = _ROW.size
    while offset < len(view):
        try:
            kind, number, name_size, size = _CHANGE.unpack_from(view, offset)
        except error:
            raise ValueError("a change is cut off") from None
        offset += _CHANGE.size
        if offset + name_size + size > len(view):
            raise ValueError("a change is longer than its row")
        name = str(view[offset : offset + name_size], "utf-8")
        offset += name_size
        yield Change(kind, number, name, view[offset : offset + size])
        offset += size


def size_of(change: Change) -> int:
    """Return the bytes of a change in a row."""
    return _CHANGE.size + len(change.name.encode()) + len(change.data)


def checksum_of(content: bytes) -> int:
    """Return the checksum in the head of a row."""
    crc: int = _ROW.unpack_from(content)[1]
    return crc


def _whole_changes(content: bytes) -> Iterator[Change]:
    """Yield the changes of a row with another number of a version, if all of it are changes."""
    try:
        yield from list(changes_of(memoryview(content)))
    except ValueError:
        return


def _damaged(where: str) -> RowDamage:
    return RowDamage(f"{where} is damaged: it is not what was written")
