"""Convert between property lists of classes file and stream and their structs in final 0-10.

    list (0-8 to transitional 0-10)         struct (0-10)
    flags(2), the highest bit first         size(4) code(2) flags(2), the lowest bit of each
                                            octet first
    shortstr                                str8            the same octets
    table  size(4) entries                  map  size(4) count(4) entries
    octet, timestamp                        uint8, datetime the same octets

Both have the same properties in the same order, so nothing is lost; `maps.py` documents the values
of headers.
"""

from __future__ import annotations

from harebell.wire.convert.maps import to_map, to_table
from harebell.wire.v010.types import Malformed
from harebell.wire.v09.property_list import FILE, STREAM, PropertyList

CODES = {FILE.class_id: b"\x09\x01", STREAM.class_id: b"\x0a\x01"}
"""Class and code of the struct by the number of the class before 0-10."""

_SIZE, _CODE, _FLAGS = 4, 2, 2
_FIXED = {"priority": 1, "timestamp": 8}
_TABLE = "headers"
_HIGHEST = 15


def to_struct(listed: PropertyList, raw: bytes) -> bytes:
    """Convert a property list to the struct of a header segment.

    Raises:
        ValueError: it is not a property list.
    """
    flags = int.from_bytes(raw[:_FLAGS])
    at, given, out = _FLAGS, 0, b""
    for place, name in enumerate(listed.kind.__struct_fields__):
        if not flags >> (_HIGHEST - place) & 1:
            continue
        given |= 1 << place
        value, at = _piece(raw, at, name)
        if name == _TABLE:
            value = to_map(value[_SIZE:])
            value = len(value).to_bytes(_SIZE) + value
        out += value
    octets = CODES[listed.class_id] + given.to_bytes(_FLAGS, "little") + out
    return len(octets).to_bytes(_SIZE) + octets


def to_list(listed: PropertyList, raw: bytes) -> bytes:
    """Convert a header segment with that struct, and nothing else, to a property list.

    Raises:
        ValueError: the struct is missing or malformed, or there is another one.
    """
    size = int.from_bytes(raw[:_SIZE])
    code = raw[_SIZE : _SIZE + _CODE]
    if code != CODES[listed.class_id]:
        raise ValueError(f"the header holds no {listed.name}-properties")
    if len(raw) != _SIZE + size:
        raise ValueError(f"the header holds more than {listed.name}-properties")
    at = _SIZE + _CODE
    given = int.from_bytes(raw[at : at + _FLAGS], "little")
    at += _FLAGS
    flags, out = 0, b""
    fields = listed.kind.__struct_fields__
    if given >> len(fields):
        raise ValueError(f"{listed.name}-properties has no such field")
    for place, name in enumerate(fields):
        if not given >> place & 1:
            continue
        flags |= 1 << (_HIGHEST - place)
        value, at = _piece(raw, at, name)
        if name == _TABLE:
            try:
                value = to_table(value[_SIZE:])
            except (IndexError, Malformed) as error:
                raise ValueError(f"headers: {error}") from None
            value = len(value).to_bytes(_SIZE) + value
        out += value
    if at != len(raw):
        raise ValueError(f"octets after the last field of {listed.name}-properties")
    return flags.to_bytes(_FLAGS) + out


def _piece(raw: bytes, at: int, name: str) -> tuple[bytes, int]:
    """Return the bytes of a property with its length, and its end."""
    if name == _TABLE:
        end = at + _SIZE + int.from_bytes(raw[at : at + _SIZE])
    elif name in _FIXED:
        end = at + _FIXED[name]
    else:
        end = at + 1 + int.from_bytes(raw[at : at + 1])
    if end > len(raw) or end == at:
        raise ValueError(f"{name.replace('_', '-')} runs over the end")
    return raw[at:end], end
