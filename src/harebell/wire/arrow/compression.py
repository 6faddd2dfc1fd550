"""Compression of the buffers of a record batch: none, or LZ4 where its library is installed."""

from __future__ import annotations

from harebell.wire.arrow.encode import Compress

NONE = ""
LZ4 = "lz4"


def compressor(name: str) -> Compress | None:
    """What compresses a buffer; None when nothing does.

    Raises:
        ValueError: there is no such compression, or not here; the text says what to do.
    """
    if name == NONE:
        return None
    if name != LZ4:
        raise ValueError(f"there is no compression '{name}': ask for lz4, or for none")
    try:
        from lz4.frame import compress  # only where it was asked for, and is installed
    except ImportError as error:
        raise ValueError(
            "compression 'lz4' needs the library lz4 where the broker runs: pip install lz4"
        ) from error
    made: Compress = compress
    return made
