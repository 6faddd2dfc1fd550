"""Build Arrow arrays row by row; in pure Python, and in C in `arrays.pyx`."""

from __future__ import annotations

from array import array
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Protocol

from harebell.base.errors import HarebellError
from harebell.base.row_columns import PROPERTY_NAMES
from harebell.kernels.limits import COLUMN_BYTES

Buffers = list[bytes | None]
Nodes = list[tuple[int, int]]
HeadersOf = Callable[[bytes], Iterable[tuple[bytes, bytes | None]]]

_FIRST_FLAG = 0x8000
_HEADERS = PROPERTY_NAMES.index("headers")
_OCTETS = (PROPERTY_NAMES.index("delivery_mode"), PROPERTY_NAMES.index("priority"))
_TIME = PROPERTY_NAMES.index("timestamp")
_MICROS = 1_000_000
_LAST_SECOND = (2**63 - 1) // _MICROS


class Column(Protocol):
    """A column that turns its rows into the buffers of an Arrow array."""

    def add(self, value: bytes) -> None:
        """Append a row, from the octets of its value."""

    def add_null(self) -> None:
        """Append a row without a value."""

    def finish(self, into: Buffers) -> None:
        """Append the buffers and start a new array."""

    def end(self, nodes: Nodes, buffers: Buffers) -> None:
        """Like `finish`, with nodes (rows, nulls) of the array and of the arrays within it."""


def _bitmap(rows: list[bool]) -> bytes:
    bits = bytearray((len(rows) + 7) // 8)
    for number, row in enumerate(rows):
        if row:
            bits[number >> 3] |= 1 << (number & 7)
    return bytes(bits)


def _validity(rows: list[bool]) -> bytes | None:
    return None if all(rows) else _bitmap(rows)


class Text:
    """A column of strings or octets, any of them null."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._valid: list[bool] = []
        self._offsets = array("i", [0])
        self._data = bytearray()

    def add(self, value: bytes) -> None:
        """Append a row."""
        end = len(self._data) + len(value)
        # Arrow's offsets are signed numbers of 32 bits.
        if end > COLUMN_BYTES:
            raise HarebellError(
                f"one column of a record batch would hold {end} octets, and the most is "
                f"{COLUMN_BYTES}"
            )
        self._data += value
        self._offsets.append(end)
        self._valid.append(True)

    def add_null(self) -> None:
        """Append a row without a value."""
        self._offsets.append(len(self._data))
        self._valid.append(False)

    def finish(self, into: Buffers) -> None:
        """Append the buffers and start a new array."""
        into += (_validity(self._valid), self._offsets.tobytes(), bytes(self._data))
        self._begin()

    def end(self, nodes: Nodes, buffers: Buffers) -> None:
        """Like `finish`, with a node: the number of rows and nulls."""
        nodes.append((len(self._valid), self._valid.count(False)))
        self.finish(buffers)

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self._valid)


class Checked(Text):
    """Strings of a peer: bytes that are no UTF-8 are shown in base64, as Arrow needs UTF-8."""

    def add(self, value: bytes) -> None:
        """Append a row."""
        try:
            value.decode()
        except UnicodeDecodeError:
            value = b"base64:" + b64encode(value)
        super().add(value)


class Number:
    """A column of numbers, any of them null."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._valid: list[bool] = []
        self._values = array(form)

    def add(self, value: bytes) -> None:
        """Append a row."""
        self.add_number(int.from_bytes(value))

    def add_number(self, value: int) -> None:
        """Append a row."""
        self._values.append(value)
        self._valid.append(True)

    def add_null(self) -> None:
        """Append a row without a value."""
        self._values.append(0)
        self._valid.append(False)

    def finish(self, into: Buffers) -> None:
        """Append the buffers and start a new array."""
        into += (_validity(self._valid), self._values.tobytes())
        self._valid = []
        self._values = array(self._form)

    def end(self, nodes: Nodes, buffers: Buffers) -> None:
        """Like `finish`, with a node: the number of rows and nulls."""
        nodes.append((len(self._valid), self._valid.count(False)))
        self.finish(buffers)


class Time(Number):
    """Seconds since 1970 as microseconds; null when those do not fit."""

    def add_number(self, value: int) -> None:
        """Append a row."""
        if value > _LAST_SECOND:
            self.add_null()
        else:
            super().add_number(value * _MICROS)


class Map:
    """The headers: the columns of all keys and of all values."""

    def __init__(self, headers_of: HeadersOf) -> None:
        self._headers_of = headers_of
        self._begin()

    def _begin(self) -> None:
        self._valid: list[bool] = []
        self._offsets = array("i", [0])
        self._keys = Text()
        self._values = Text()

    def add(self, value: bytes) -> None:
        """Append a row."""
        for key, text in self._headers_of(value):
            self._keys.add(key)
            if text is None:
                self._values.add_null()
            else:
                self._values.add(text)
        self._end_row(True)

    def add_null(self) -> None:
        """Append a row without a value."""
        self._end_row(False)

    def _end_row(self, valid: bool) -> None:
        self._offsets.append(self._keys.rows)
        self._valid.append(valid)

    def finish(self, into: Buffers) -> None:
        """Append the buffers and start a new array."""
        into += (_validity(self._valid), self._offsets.tobytes())
        self._keys.finish(into)
        self._values.finish(into)
        self._begin()

    def end(self, nodes: Nodes, buffers: Buffers) -> None:
        """Like `finish`, with nodes; the entries are an array between the map and its keys."""
        nodes += ((len(self._valid), self._valid.count(False)), (self._keys.rows, 0))
        buffers += (_validity(self._valid), self._offsets.tobytes(), None)
        self._keys.end(nodes, buffers)
        self._values.end(nodes, buffers)
        self._begin()


class Flags:
    """A column of booleans, none of them null."""

    def __init__(self) -> None:
        self._values: list[bool] = []

    def add(self, value: bytes) -> None:
        """Append a row."""
        self._values.append(value != b"\0")

    def add_null(self) -> None:
        """Append a row without a value."""
        # Without a validity bitmap there are no nulls.
        raise AssertionError("redelivered is never null")

    def finish(self, into: Buffers) -> None:
        """Append the buffers and start a new array."""
        into += (None, _bitmap(self._values))
        self._values = []

    def end(self, nodes: Nodes, buffers: Buffers) -> None:
        """Like `finish`, with a node: the number of rows."""
        nodes.append((len(self._values), 0))
        self.finish(buffers)


def field_column(name: str) -> Column:
    """Make the column of a field of `properties`."""
    number = PROPERTY_NAMES.index(name)
    if number in _OCTETS:
        return Number("i")
    return Time("q") if number == _TIME else Checked()


def split_properties(raw: bytes) -> dict[str, bytes] | None:
    """Return the octets of every property that is present, without their sizes; None if cut off."""
    if len(raw) < 2:
        return None
    flags = int.from_bytes(raw[:2])
    values: dict[str, bytes] = {}
    offset = 2
    for number, name in enumerate(PROPERTY_NAMES):
        if not flags & (_FIRST_FLAG >> number):
            continue
        if offset >= len(raw):
            return None
        if number == _HEADERS:
            start = offset + 4
            size = int.from_bytes(raw[offset:start])
        elif number in _OCTETS:
            start, size = offset, 1
        elif number == _TIME:
            start, size = offset, 8
        else:
            start, size = offset + 1, raw[offset]
        if start > len(raw) or start + size > len(raw):
            return None
        values[name] = raw[start : start + size]
        offset = start + size
    return values
