"""The number that a publisher gives a message, in its header `x-publishing-id`.

In pure Python, and in C in `publishing.pyx`. It is asked for each message of a publisher whose
repeats are dropped, so the header table is walked, and nothing of it is decoded.
"""

from __future__ import annotations

from harebell.base.row_columns import PUBLISHING_ID

_SIZES = {b"V": 0, b"t": 1, b"b": 1, b"B": 1, b"s": 2, b"u": 2, b"I": 4, b"i": 4, b"f": 4}
_SIZES |= {b"l": 8, b"L": 8, b"d": 8, b"T": 8, b"D": 5}
_SIGNED = (b"b", b"s", b"I", b"l", b"L")
_UNSIGNED = (b"B", b"u", b"i")


def publishing_id(raw: bytes) -> int:
    """The header `x-publishing-id` of a property list that was checked; -1 without a good one."""
    if not int.from_bytes(raw[:2]) & 0x2000:
        return -1
    at = 2
    for flag in (0x8000, 0x4000):
        if int.from_bytes(raw[:2]) & flag:
            at += 1 + raw[at]
    end = at + 4 + int.from_bytes(raw[at : at + 4])
    at += 4
    while at < end:
        name = raw[at + 1 : at + 1 + raw[at]]
        at += 1 + raw[at]
        tag, at = raw[at : at + 1], at + 1
        size = _SIZES.get(tag, -1)
        if size < 0:
            size = 4 + int.from_bytes(raw[at : at + 4])
        if name == PUBLISHING_ID:
            if tag not in _SIGNED + _UNSIGNED:
                return -1
            return max(int.from_bytes(raw[at : at + size], signed=tag in _SIGNED), -1)
        at += size
    return -1


def unnumbered(table: bytes) -> bytes:
    """A header table that was checked, without its size and without every `x-publishing-id`."""
    if PUBLISHING_ID not in table:
        return table
    kept = bytearray()
    at = 0
    while at < len(table):
        begin = at
        name = table[at + 1 : at + 1 + table[at]]
        at += 1 + table[at]
        size = _SIZES.get(table[at : at + 1], -1)
        at += 1
        if size < 0:
            size = 4 + int.from_bytes(table[at : at + 4])
        at += size
        if name != PUBLISHING_ID:
            kept += table[begin:at]
    return bytes(kept)
