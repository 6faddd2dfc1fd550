"""Animated pictures: frames that are PNG files become one APNG, without being drawn again.

https://www.w3.org/TR/png-3/#apng-frame-based-animation
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The type and the data of each chunk of a PNG file."""
    at = len(SIGNATURE)
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + length]
        at += 12 + length


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _pixels(png: bytes) -> bytes:
    """The data of a picture, compressed as well as zlib can: browsers compress in haste."""
    found = b"".join(data for kind, data in chunks(png) if kind == b"IDAT")
    return zlib.compress(zlib.decompress(found), 9)


def packed(png: bytes) -> bytes:
    """The same picture in fewer bytes."""
    header = next(data for kind, data in chunks(png) if kind == b"IHDR")
    rest = ((b"IHDR", header), (b"IDAT", _pixels(png)), (b"IEND", b""))
    return b"".join((SIGNATURE, *(_chunk(kind, data) for kind, data in rest)))


def animated(frames: Sequence[tuple[bytes, int]]) -> bytes:
    """An APNG that shows frames again and again.

    Args:
        frames: PNG files of one size and one kind, each with the milliseconds that it is shown.
    """
    header = next(data for kind, data in chunks(frames[0][0]) if kind == b"IHDR")
    width, height = struct.unpack_from(">II", header)
    made = [SIGNATURE, _chunk(b"IHDR", header), _chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    sequence = 0
    for number, (png, shown_ms) in enumerate(frames):
        control = struct.pack(">IIIIIHHBB", sequence, width, height, 0, 0, shown_ms, 1000, 0, 0)
        made.append(_chunk(b"fcTL", control))
        sequence += 1
        if next(chunks(png)) != (b"IHDR", header):
            raise ValueError("the frames differ in their size or their kind")
        if number == 0:
            made.append(_chunk(b"IDAT", _pixels(png)))
            continue
        made.append(_chunk(b"fdAT", struct.pack(">I", sequence) + _pixels(png)))
        sequence += 1
    return b"".join((*made, _chunk(b"IEND", b"")))
