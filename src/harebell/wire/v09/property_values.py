"""Encode the value of one property, for all classes of contents.

octet       one byte                    timestamp   8 bytes, seconds since 1970
shortstr    length(1) UTF-8             table       size(4) entries
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from harebell.base.limits import NAME_BYTES
from harebell.wire.v09.fields import encode_table, write_timestamp

_OCTET_MAX = 255


def write_value(name: str, kind: str, value: Any) -> bytes:
    """Encode the value of a property.

    Args:
        name: of the property, for errors.
        kind: its data type: octet, timestamp, table or shortstr.
        value: the value, not None.

    Raises:
        ValueError: the value does not fit.
        TypeError: it is of a wrong type.
    """
    if kind == "octet":
        _check_type(name, value, int)
        if not 0 <= value <= _OCTET_MAX:
            raise ValueError(f"{name}: {value} is not between 0 and {_OCTET_MAX}")
        return bytes((value,))
    if kind == "timestamp":
        _check_type(name, value, int, datetime)
        return write_timestamp(value, name)
    if kind == "table":
        try:
            return encode_table(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
    _check_type(name, value, str)
    try:
        octets: bytes = value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{name}: {value!a} has characters that UTF-8 cannot express") from None
    if len(octets) > NAME_BYTES:
        raise ValueError(f"{name}: it has {len(octets)} octets, at most {NAME_BYTES} are possible")
    return bytes((len(octets),)) + octets


def _check_type(name: str, value: Any, *kinds: type) -> None:
    # A bool is an int to Python, but True as a priority is a mistake.
    if not isinstance(value, kinds) or isinstance(value, bool):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{name}: must be {expected}, not {type(value).__name__}")
