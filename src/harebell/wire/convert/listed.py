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
    offset, packing_flags, out = _FLAGS, 0, b""
    for index, name in enumerate(listed.kind.__struct_fields__):
        if not flags >> (_HIGHEST - index) & 1:
            continue
        packing_flags |= 1 << index
        value, offset = _piece(raw, offset, name)
        if name == _TABLE:
            value = to_map(value[_SIZE:])
            value = len(value).to_bytes(_SIZE) + value
        out += value
    # Little-endian: the flag of the first field is the lowest bit of the first octet.
    octets = CODES[listed.class_id] + packing_flags.to_bytes(_FLAGS, "little") + out
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
    # A property list has no room for the fields of another struct.
    if len(raw) != _SIZE + size:
        raise ValueError(f"the header holds more than {listed.name}-properties")
    offset = _SIZE + _CODE
    packing_flags = int.from_bytes(raw[offset : offset + _FLAGS], "little")
    offset += _FLAGS
    flags, out = 0, b""
    fields = listed.kind.__struct_fields__
    if packing_flags >> len(fields):
        raise ValueError(f"{listed.name}-properties has no such field")
    for index, name in enumerate(fields):
        if not packing_flags >> index & 1:
            continue
        flags |= 1 << (_HIGHEST - index)
        value, offset = _piece(raw, offset, name)
        if name == _TABLE:
            try:
                value = to_table(value[_SIZE:])
            except (IndexError, Malformed) as error:
                raise ValueError(f"headers: {error}") from None
            value = len(value).to_bytes(_SIZE) + value
        out += value
    if offset != len(raw):
        raise ValueError(f"octets after the last field of {listed.name}-properties")
    return flags.to_bytes(_FLAGS) + out


def _piece(raw: bytes, offset: int, name: str) -> tuple[bytes, int]:
    """Return the bytes of a property with its length, and its end."""
    if name == _TABLE:
        end = offset + _SIZE + int.from_bytes(raw[offset : offset + _SIZE])
    elif name in _FIXED:
        end = offset + _FIXED[name]
    else:
        end = offset + 1 + int.from_bytes(raw[offset : offset + 1])
    if end > len(raw):
        raise ValueError(f"{name.replace('_', '-')} runs over the end")
    return raw[offset:end], end
