"""Values of AMQP as JSON, and back: once, for every door that shows, exports or takes them.

`shown` is for people and tools, in the words of RabbitMQ; `kept` is for what is read back, such as
definitions, and `given` reads it. Whatever a peer of any version can send has a row here.

    value                             shown                     kept
    none, boolean, text               as it is                  as it is
    number                            as it is                  as it is
    octets that are UTF-8             text                      {"$binary": "base64"}
    octets that are no UTF-8          "base64:..."              {"$binary": "base64"}
    text that is no UTF-8             "base64:..."              {"$text": "base64"}
    timestamp                         seconds since 1970        {"$timestamp": seconds}
    decimal                           number, "digits" if long  {"$decimal": "12.50"}
    NaN, infinite                     "nan", "inf", "-inf"      {"$double": "nan"}
    UUID                              its text                  {"$uuid": "its text"}
    integer of more than 64 bits      its digits                {"$decimal": "digits"}
    other type of 0-10                "0x85:base64..."          {"$typed": "0x85:base64"}
    list, array                       list                      list
    table                             object                    object
    table of one name that begins     object                    {"$table": {...}}
    with "$"
    name that is no UTF-8             "base64:..."              "$binary:base64"
    name that begins with "$binary:"  as it is                  "$binary:base64"

The widths of numbers are not kept: 1 and 1.0 differ, 1 in 8 bits and in 64 bits do not. The items
of an array of 0-10 become a list.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any
from uuid import UUID

from harebell.base.limits import FRAME_MAX_BYTES, NAME_BYTES, TABLE_DEPTH
from harebell.base.values import Typed
from harebell.wire.v09.fields import LongString, Timestamp, encode_table, read_timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTEGER_MIN, _INTEGER_MAX = -(1 << 63), (1 << 64) - 1
_BASE64 = "base64:"
_NAME = "$binary:"
_ENTRY_BYTES = 3
"""Minimum size of an entry of a table: a name of one octet, and its type."""
_DEPTH_MAX = 2 * TABLE_DEPTH
"""Depth to which values are shown: more than a peer can send, as values may refer to each other."""
_SHOWN_CHARACTERS = 60
"""Characters of a name that an error quotes."""


# --- to JSON --------------------------------------------------------------------------------------


def shown(value: Any, *, iso: bool = False) -> Any:
    """Return a value of AMQP as people and tools see it.

    Args:
        value: of any type that a peer can send; what has no type in AMQP is shown as text.
        iso: whether a time is written as text, and not in seconds since 1970.
    """
    return _Shown(iso=iso).of(value)


def shown_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table as people and tools see it."""
    return {text_of(name): shown(value) for name, value in table.items()}


def text_of(text: str | bytes) -> str:
    """Return a text, or octets; those that are no UTF-8 in base64."""
    if isinstance(text, str):
        if text.isascii():
            return text
        text = _octets(text)
    try:
        return text.decode()
    except UnicodeDecodeError:
        return _BASE64 + _encoded(text)


def kept(value: Any) -> Any:
    """Return a value of AMQP in JSON from which `given` makes it again."""
    return _Kept().of(value)


def kept_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table from which `given_table` makes it again."""
    return {_kept_name(name): kept(value) for name, value in table.items()}


def _octets(text: str) -> bytes:
    """Return the octets of a text, of which some may be no UTF-8."""
    return text.encode(errors="surrogateescape" if _is_escaped(text) else "surrogatepass")


def _is_escaped(text: str) -> bool:
    """True if `surrogateescape` can have made this text."""
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _encoded(octets: bytes | bytearray | memoryview) -> str:
    return b64encode(octets).decode("ascii")


def _seconds(moment: datetime) -> int:
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // timedelta(seconds=1)


class _Shown:
    """Walks a value for people."""

    def __init__(self, *, iso: bool) -> None:
        self._iso = iso

    def of(self, value: Any, depth: int = 0) -> Any:
        """Return the value in JSON."""
        if isinstance(value, str):
            return text_of(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if _INTEGER_MIN <= value <= _INTEGER_MAX else str(int(value))
        if isinstance(value, float):
            return value if isfinite(value) else str(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return text_of(bytes(value))
        if isinstance(value, datetime):
            return value.isoformat() if self._iso else _seconds(value)
        if isinstance(value, Decimal):
            return _number(value)
        if isinstance(value, Typed):
            return f"{value.code:#04x}:{_encoded(value.data)}"
        # Values of the broker itself may contain each other; those of peers have a limit.
        if depth > _DEPTH_MAX:
            return "..."
        if isinstance(value, Mapping):
            return {_name(name): self.of(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.of(item, depth + 1) for item in value]
        return text_of(str(value))


def _name(name: Any) -> str:
    return text_of(name if isinstance(name, str | bytes) else str(name))


def _number(value: Decimal) -> float | str:
    """Return a decimal as a number, or as its digits if a number cannot have them."""
    try:
        number = float(value)
        # By the digits that JSON would have, not by the exact value of the double.
        is_exact = isfinite(number) and Decimal(repr(number)) == value
    except (OverflowError, InvalidOperation, ValueError):
        return str(value)
    return number if is_exact else str(value)


class _Kept:
    """Walks a value for what is read back."""

    def of(self, value: Any) -> Any:
        """Return the value in JSON."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            octets = _octets(value)
            return value if _is_utf8(octets) else {"$text": _encoded(octets)}
        for kind, write in _KEPT.items():
            if isinstance(value, kind):
                return write(value)
        if isinstance(value, Mapping):
            members = {_kept_name(name): self.of(item) for name, item in value.items()}
            # Such a table would be read back as one of the objects that stand for a type.
            ambiguous = len(members) == 1 and next(iter(members)).startswith("$")
            return {"$table": members} if ambiguous else members
        if isinstance(value, list | tuple | set | frozenset):
            return [self.of(item) for item in value]
        return text_of(str(value))


def _kept_name(name: Any) -> str:
    octets = _octets(name) if isinstance(name, str) else str(name).encode()
    if _is_utf8(octets) and not octets.startswith(_NAME.encode()):
        return octets.decode()
    return _NAME + _encoded(octets)


def _is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


def _kept_integer(value: int) -> Any:
    if isinstance(value, Timestamp):
        return {"$timestamp": int(value)}
    return int(value) if _INTEGER_MIN <= value <= _INTEGER_MAX else {"$decimal": str(value)}


_KEPT: dict[type, Callable[[Any], Any]] = {
    int: _kept_integer,
    float: lambda value: value if isfinite(value) else {"$double": repr(value)},
    LongString: lambda value: {"$text": _encoded(value)},
    bytes: lambda value: {"$binary": _encoded(value)},
    bytearray: lambda value: {"$binary": _encoded(value)},
    memoryview: lambda value: {"$binary": _encoded(value)},
    datetime: lambda value: {"$timestamp": _seconds(value)},
    Decimal: lambda value: {"$decimal": str(value)},
    UUID: lambda value: {"$uuid": str(value)},
    Typed: lambda value: {"$typed": f"{value.code:#04x}:{_encoded(value.data)}"},
}
"""How types are kept that JSON has no word for; a subclass stands before its base."""


# --- from JSON ------------------------------------------------------------------------------------


def given_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table that JSON stands for, within the limits that AMQP has.

    Args:
        table: from JSON, as `kept_table` writes it; what it does not write is taken as it is.

    Raises:
        ValueError: it has a value that AMQP cannot carry, is nested too deeply, or does not fit a
            frame of FRAME_MAX_BYTES; the text says what and where.
    """
    table_read: dict[str, Any] = _Given().table(table, "", 1)
    # The walk bounds the work; only the encoded table says whether it fits a frame.
    try:
        size = len(encode_table(table_read))
    except TypeError as error:
        raise ValueError(str(error)) from None
    if size > FRAME_MAX_BYTES:
        raise ValueError(_too_large(f"{size:,} bytes"))
    return table_read


def _too_large(size: str) -> str:
    return f"it takes {size}, and at most {FRAME_MAX_BYTES:,} bytes are possible: give less"


class _Given:
    """Walks JSON, and stops early when there is too much of it."""

    def __init__(self) -> None:
        self._left = FRAME_MAX_BYTES // _ENTRY_BYTES
        self._bytes_left = FRAME_MAX_BYTES

    def table(self, table: Mapping[str, Any], key: str, depth: int) -> dict[str, Any]:
        """Return a table."""
        self._enter(key, depth)
        self._look_ahead(table)
        values: dict[str, Any] = {}
        for name, value in table.items():
            self._count()
            values[_given_name(name)] = self._value(value, name, depth)
        return values

    def _value(self, value: Any, key: str, depth: int) -> Any:
        if isinstance(value, dict):
            if len(value) == 1:
                ((name, inner),) = value.items()
                if name == "$table" and isinstance(inner, dict):
                    return self.table(inner, key, depth + 1)
                read = _GIVEN.get(name)
                if read is not None:
                    return _read(read, name, inner, key)
            return self.table(value, key, depth + 1)
        if isinstance(value, list):
            self._enter(key, depth + 1)
            items = []
            for item in value:
                self._count()
                items.append(self._value(item, key, depth + 1))
            return items
        return value

    def _enter(self, key: str, depth: int) -> None:
        if depth > TABLE_DEPTH:
            raise ValueError(
                f"'{_short(key)}': tables and arrays are nested deeper than {TABLE_DEPTH}"
            )

    def _look_ahead(self, table: Mapping[str, Any]) -> None:
        """Refuse a table whose names alone are too large, before its values are looked at."""
        if len(table) > self._left:
            raise ValueError(_too_large(f"more than {FRAME_MAX_BYTES // _ENTRY_BYTES:,} entries"))
        # A name that starts with "$" may stand for a shorter one.
        self._bytes_left -= sum(
            len(name) + _ENTRY_BYTES - 1 for name in table if not name.startswith("$")
        )
        if self._bytes_left < 0:
            raise ValueError(_too_large(f"more than {FRAME_MAX_BYTES:,} bytes"))

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise ValueError(_too_large(f"more than {FRAME_MAX_BYTES // _ENTRY_BYTES:,} entries"))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def _read(read: Callable[[Any], Any], name: str, inner: Any, key: str) -> Any:
    try:
        return read(inner)
    except (ValueError, TypeError, InvalidOperation):
        example = _EXAMPLES[name]
        raise ValueError(
            f"'{_short(key)}': {{\"{name}\": ...}} has another value than its kind has: "
            f'write it such as {{"{name}": {example}}}, or {{"$table": {{"{name}": ...}}}} for a '
            "table of that name"
        ) from None


def _given_name(name: str) -> str:
    octets = _octets(name)
    if name.startswith(_NAME):
        try:
            octets = b64decode(name.removeprefix(_NAME), validate=True)
        except ValueError:
            raise ValueError(f"the name '{_short(name)}' is not base64 behind '{_NAME}'") from None
        name = octets.decode(errors="surrogateescape")
    if len(octets) > NAME_BYTES:
        raise ValueError(
            f"the name '{_short(name)}' has {len(octets)} bytes, at most {NAME_BYTES} are "
            "possible: shorten it"
        )
    return name


def _binary(value: str) -> bytes:
    return b64decode(value, validate=True)


def _text(value: str) -> str | LongString:
    octets = _binary(value)
    return octets.decode() if _is_utf8(octets) else LongString(octets)


def _time(value: int) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _INTEGER_MAX:
        raise ValueError
    return read_timestamp(value)


def _decimal(value: str) -> Decimal:
    if not isinstance(value, str):
        raise TypeError
    return Decimal(value)


def _double(value: str) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise ValueError
    return float(value)


def _typed(value: str) -> Typed:
    code, _, octets = value.partition(":")
    return Typed(int(code, 16), _binary(octets))


_GIVEN: dict[str, Callable[[Any], Any]] = {
    "$binary": _binary,
    "$text": _text,
    "$timestamp": _time,
    "$decimal": _decimal,
    "$double": _double,
    "$uuid": UUID,
    "$typed": _typed,
}
_EXAMPLES = {
    "$binary": '"aGk="',
    "$text": '"TfxuCg=="',
    "$timestamp": "1357016400",
    "$decimal": '"12.50"',
    "$double": '"nan"',
    "$uuid": '"12345678-1234-5678-1234-567812345678"',
    "$typed": '"0x04:YQ=="',
}
