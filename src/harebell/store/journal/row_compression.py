"""Compress the rows of a log with LZ4, where that makes them smaller.

    row    version u8 (2), zero, zero, zero, CRC-32C of the rest u32, size u32, LZ4 block

The block is a whole row of version 1 with its own head, and the size is that of this row in bytes:
see `changes.py`. Numbers are little-endian.

LZ4 takes less time for a byte than PostgreSQL does for one that it has to copy, log, write, sync
and send to standbys. Bodies that are compressed already do not get smaller: then a few rows are
left as they are before it is tried again.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from harebell.base.errors import StoreError
from harebell.kernels.records import crc32c
from harebell.store.limits import COMPRESS_MIN_BYTES, COMPRESS_SHARE, COMPRESS_SKIPPED_ROWS

COMPRESSED = 2
"""The version of a compressed row."""
_HEAD = Struct("<B3xI")
_SIZE = Struct("<I")
_RATIO_MAX = 256
"""How many times smaller LZ4 makes bytes at most."""
_BLOCK_AT = _HEAD.size + _SIZE.size


def lz4_block() -> Any:
    """Return the module that compresses.

    Raises:
        StoreError: it is not installed.
    """
    try:
        import lz4.block
    except ImportError as error:
        raise StoreError(
            f"storage in PostgreSQL needs LZ4 ({error}): pip install 'harebell[postgresql]'"
        ) from None
    return lz4.block


class RowCompressor:
    """Compresses the rows of one log.

    Raises:
        StoreError: LZ4 is not installed.
    """

    def __init__(self) -> None:
        self._compress = lz4_block().compress
        self._skipped = 0

    def compress(self, row: bytes) -> bytes:
        """Return a row compressed, or as it is if it is small or does not get smaller."""
        if len(row) < COMPRESS_MIN_BYTES:
            return row
        if self._skipped:
            self._skipped -= 1
            return row
        block = self._compress(row, store_size=False)
        if len(block) > len(row) * COMPRESS_SHARE:
            self._skipped = COMPRESS_SKIPPED_ROWS
            return row
        size = _SIZE.pack(len(row))
        crc = crc32c(block, crc32c(size))
        return b"".join((_HEAD.pack(COMPRESSED, crc), size, block))


def unchecked(row: bytes) -> bytes:
    """Return a row as it was before compression, whose checksum is not compared; b"" if it is none.

    Raises:
        StoreError: LZ4 is not installed.
    """
    if len(row) < _BLOCK_AT:
        return b""
    (size,) = _SIZE.unpack_from(row, _HEAD.size)
    # Checked before memory is allocated: a damaged size may be 4 GiB.
    if size > len(row) * _RATIO_MAX:
        return b""
    module = lz4_block()
    try:
        plain: bytes = module.decompress(memoryview(row)[_BLOCK_AT:], uncompressed_size=size)
    except module.LZ4BlockError:
        return b""
    return plain


def decompressed(row: bytes) -> bytes:
    """Return a compressed row as it was.

    Raises:
        StoreError: LZ4 is not installed.
        ValueError: it is damaged.
    """
    if len(row) < _BLOCK_AT:
        raise ValueError("it is too short")
    _, crc = _HEAD.unpack_from(row)
    (size,) = _SIZE.unpack_from(row, _HEAD.size)
    view = memoryview(row)
    if crc32c(view[_HEAD.size :]) != crc:
        raise ValueError("its checksum is wrong")
    module = lz4_block()
    try:
        plain: bytes = module.decompress(view[_BLOCK_AT:], uncompressed_size=size)
    except module.LZ4BlockError as error:
        raise ValueError(str(error)) from None
    return plain
