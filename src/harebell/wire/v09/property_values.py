"""How the value of one property is written, whatever the class of the content."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from harebell.base.limits import NAME_BYTES
from harebell.wire.v09.fields import encode_table, write_timestamp

_OCTET_MAX = 255


def write_value(name: str, kind: str, value: Any) -> bytes:
    """The octets of a property.

    Args:
        name: of the property, for errors.
        kind: its data type: octet, timestamp, table or shortstr.
        value: what is to be written.

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
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{name}: must be {wanted}, not {type(value).__name__}")
