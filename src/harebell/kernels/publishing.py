"""The number that a publisher gives a message, in its header `x-publishing-id`.

In pure Python, and in C in `publishing.pyx`. The number is read for each message of a named
publisher, so the header table is scanned, and none of its values is decoded.
"""

from __future__ import annotations

from harebell.base.row_columns import PUBLISHING_ID

_SIZES = {b"V": 0, b"t": 1, b"b": 1, b"B": 1, b"s": 2, b"u": 2, b"I": 4, b"i": 4, b"f": 4}
_SIZES |= {b"l": 8, b"L": 8, b"d": 8, b"T": 8, b"D": 5}
_SIGNED = (b"b", b"s", b"I", b"l", b"L")
_UNSIGNED = (b"B", b"u", b"i")


def publishing_id(raw: bytes) -> int:
    """Return the header `x-publishing-id` of a checked property list; -1 without a valid one."""
    if not int.from_bytes(raw[:2]) & 0x2000:
        return -1
    offset = 2
    for flag in (0x8000, 0x4000):
        if int.from_bytes(raw[:2]) & flag:
            offset += 1 + raw[offset]
    end = offset + 4 + int.from_bytes(raw[offset : offset + 4])
    offset += 4
    while offset < end:
        name = raw[offset + 1 : offset + 1 + raw[offset]]
        offset += 1 + raw[offset]
        tag, offset = raw[offset : offset + 1], offset + 1
        size = _SIZES.get(tag, -1)
        # A long string, table or array: its length comes first.
        if size < 0:
            size = 4 + int.from_bytes(raw[offset : offset + 4])
        if name == PUBLISHING_ID:
            if tag not in _SIGNED + _UNSIGNED:
                return -1
            return max(int.from_bytes(raw[offset : offset + size], signed=tag in _SIGNED), -1)
        offset += size
    return -1


def unnumbered(table: bytes) -> bytes:
    """Return a header table without every `x-publishing-id`.

    Args:
        table: a checked header table, without its size.
    """
    # Mostly there is no such header: one search, and no copy.
    if PUBLISHING_ID not in table:
        return table
    kept = bytearray()
    offset = 0
    while offset < len(table):
        begin = offset
        name = table[offset + 1 : offset + 1 + table[offset]]
        offset += 1 + table[offset]
        size = _SIZES.get(table[offset : offset + 1], -1)
        offset += 1
        if size < 0:
            size = 4 + int.from_bytes(table[offset : offset + 4])
        offset += size
        if name != PUBLISHING_ID:
            kept += table[begin:offset]
    return bytes(kept)
