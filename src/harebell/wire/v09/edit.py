"""Changes to an encoded property list that leave every other octet as its publisher wrote it.

    before   flags | content-type ... | headers: size entry entry | ... expiration ...
    after    flags'| content-type ... | headers: size' entry new  | ...

Decoding and encoding again would widen or narrow numbers and drop second entries of one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harebell.wire.v09.fields import encode_entry, entries

_SIZE = 4
_FIRST_BIT = 15
_HEADERS = 13
_REPLY_TO = 9
_EXPIRATION = 8
_TIMESTAMP = 6
_FIXED = {12: 1, 11: 1, 6: 8}
"""Bits of the properties that are neither short strings nor tables, and their octets."""
_LAST_BIT = 2


def _parts(raw: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the properties of a well-formed list: the bit in the flags, begin and end."""
    flags = int.from_bytes(raw[:2])
    offset = 2
    for bit in range(_FIRST_BIT, _LAST_BIT - 1, -1):
        if not flags >> bit & 1:
            continue
        if bit == _HEADERS:
            end = offset + _SIZE + int.from_bytes(raw[offset : offset + _SIZE])
        elif bit in _FIXED:
            end = offset + _FIXED[bit]
        else:
            end = offset + 1 + raw[offset]
        yield bit, offset, end
        offset = end


def _table(raw: bytes, begin: int, end: int, changes: Mapping[str, Any]) -> bytes:
    """Return a table without the entries that change, and with their new values at its end."""
    names = {name.encode(errors="surrogateescape") for name in changes}
    unchanged = b""
    # Equal for a list that has no table yet.
    if begin < end:
        unchanged = b"".join(
            raw[offset:to] for name, offset, to in entries(raw, begin) if name not in names
        )
    added = b"".join(
        encode_entry(name, value) for name, value in changes.items() if value is not None
    )
    return (len(unchanged) + len(added)).to_bytes(_SIZE) + unchanged + added


def headers_span(raw: bytes) -> tuple[int, int]:
    """Return begin and end of the header table in a well-formed list, its size included.

    Both are the offset where a table would be inserted if the list has none. The classes file and
    stream have the same properties before their headers.
    """
    begin = end = 2
    # It stops at the headers: what follows differs between the classes.
    for bit, _, after in _parts(raw):
        if bit > _HEADERS:
            begin = end = after
        elif bit == _HEADERS:
            end = after
        else:
            break
    return begin, end


def header_octets(raw: bytes) -> bytes:
    """Return the entries of the header table in a well-formed list, without their size."""
    header_parts = (raw[begin + _SIZE : end] for bit, begin, end in _parts(raw) if bit == _HEADERS)
    return next(header_parts, b"")


def without_headers(raw: bytes) -> bytes:
    """Return a well-formed list without its header table, of which most octets may be."""
    for bit, begin, end in _parts(raw):
        if bit == _HEADERS:
            flags = int.from_bytes(raw[:2]) & ~(1 << _HEADERS)
            return flags.to_bytes(2) + raw[2:begin] + raw[end:]
    return raw


def edited(raw: bytes, changes: Mapping[str, Any], *, keep_expiration: bool = True) -> bytes:
    """Return a property list with some headers set or removed.

    Args:
        raw: a well-formed list, as it was published.
        changes: headers and their new values; None removes a header.
        keep_expiration: False removes the property expiration.

    Raises:
        TypeError, ValueError: a value cannot stand in a table; the text names its key.
    """
    flags = int.from_bytes(raw[:2])
    before = after = b""
    table = b""
    for bit, begin, end in _parts(raw):
        if bit == _HEADERS:
            table = _table(raw, begin, end, changes)
        elif bit == _EXPIRATION and not keep_expiration:
            flags &= ~(1 << _EXPIRATION)
        elif bit > _HEADERS:
            before += raw[begin:end]
        else:
            after += raw[begin:end]
    # The list has no table: one is added, unless headers are only removed.
    if not table and any(value is not None for value in changes.values()):
        table = _table(raw, 0, 0, changes)
        flags |= 1 << _HEADERS
    return flags.to_bytes(2) + before + table + after


def stamped(raw: bytes, seconds: int) -> bytes:
    """Return a property list with this timestamp, in seconds since 1970.

    Args:
        raw: a well-formed list.
        seconds: not negative.
    """
    octets = seconds.to_bytes(_FIXED[_TIMESTAMP])
    flags = int.from_bytes(raw[:2]) | 1 << _TIMESTAMP
    before = after = b""
    for bit, begin, end in _parts(raw):
        if bit > _TIMESTAMP:
            before += raw[begin:end]
        elif bit < _TIMESTAMP:
            after += raw[begin:end]
    return flags.to_bytes(2) + before + octets + after


def answered_at(raw: bytes, name: str) -> bytes:
    """Return a property list with another reply-to.

    Args:
        raw: a well-formed list that has a reply-to.
        name: the new value, at most 255 octets.
    """
    octets = name.encode()
    for bit, begin, end in _parts(raw):
        if bit == _REPLY_TO:
            return raw[:begin] + bytes((len(octets),)) + octets + raw[end:]
    return raw
