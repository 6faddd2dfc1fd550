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
from struct import Struct
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


class Change(NamedTuple):
    """One change; the table above says what its parts mean."""

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
        StoreError: the row is damaged, or LZ4 is not installed.
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
        StoreError: a newer version wrote the row, or it is damaged.
    """
    if len(content) < _ROW.size:
        raise _damaged(where)
    version, crc = _ROW.unpack_from(content)
    if version != _VERSION:
        raise StoreError(
            f"{where} has format {version}, and this version of Harebell reads {_VERSION}: use the "
            "version that wrote it"
        )
    if crc32c(content[_ROW.size :]) != crc:
        raise _damaged(where)
    return _changes(memoryview(content))


def _changes(view: memoryview) -> Iterator[Change]:
    at = _ROW.size
    while at < len(view):
        kind, number, name, size = _CHANGE.unpack_from(view, at)
        at += _CHANGE.size
        path = str(view[at : at + name], "utf-8")
        at += name
        yield Change(kind, number, path, view[at : at + size])
        at += size


def _damaged(where: str) -> StoreError:
    return StoreError(f"{where} is damaged: it is not what was written; restore it from a backup")
