"""Deliveries to Arrow columns; in pure Python, and in C in `columns.pyx`.

A delivery becomes a row of every wanted column. When enough rows have come they are closed into a
chunk `(position of the first row, rows, buffers)`. The buffers follow each other in the order of
the columns, in Arrow's layout, so that assembling a record batch copies nothing:

    column                                  buffers
    value, routing_key, exchange, queue     validity, offsets, octets
    offset, timestamp                       validity, 8-octet integers
    delivery_count                          validity, 4-octet integers
    redelivered                             validity, bits
    properties, for each wanted field       like a string, a 4-octet integer (delivery_mode,
                                            priority) or an 8-octet one (timestamp)
    headers                                 validity, offsets,
                                            keys: validity, offsets, octets
                                            values: validity, offsets, octets

A validity that is None means that no row is null. Offsets are 4-octet integers, one more than rows;
everything is little-endian, and the first row's bit is the lowest of its octet.
"""

from __future__ import annotations

from array import array
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Protocol

from harebell.base.errors import HarebellError, ProtocolError
from harebell.base.limits import COLUMN_BYTES
from harebell.base.message import Properties
from harebell.kernels.frames import FrameSink

Buffers = list[bytes | None]
Chunk = tuple[int, int, Buffers]
HeadersOf = Callable[[bytes], Iterable[tuple[bytes, bytes | None]]]
CountOf = Callable[[bytes, bool], int]

PROPERTY_NAMES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id",
    "reply_to", "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip
"""The properties of class basic, in the order of their flags (AMQP 0-9-1 4.2.6.1)."""

_HEADERS = PROPERTY_NAMES.index("headers")
_OCTETS = (PROPERTY_NAMES.index("delivery_mode"), PROPERTY_NAMES.index("priority"))
_TIME = PROPERTY_NAMES.index("timestamp")
_FIRST_FLAG = 0x8000
_MICROS = 1_000_000
_LAST_SECOND = (2**63 - 1) // _MICROS
_COUNT_NAME = b"\x10x-delivery-count"


class Column(Protocol):
    """What a column can do when its rows are to become buffers."""

    def add(self, value: bytes) -> None:
        """Append a row, from the octets of its value."""

    def add_null(self) -> None:
        """Append a row without a value."""

    def finish(self, into: Buffers) -> None:
        """Append the buffers and begin anew."""


def _bitmap(rows: list[bool]) -> bytes:
    bits = bytearray((len(rows) + 7) // 8)
    for number, row in enumerate(rows):
        if row:
            bits[number >> 3] |= 1 << (number & 7)
    return bytes(bits)


def _validity(rows: list[bool]) -> bytes | None:
    return None if all(rows) else _bitmap(rows)


class _Text:
    """A column of strings or octets, any of them null."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._valid: list[bool] = []
        self._offsets = array("i", [0])
        self._data = bytearray()

    def add(self, value: bytes) -> None:
        end = len(self._data) + len(value)
        if end > COLUMN_BYTES:
            raise HarebellError(
                f"one column of a record batch would hold {end} octets, and the most is "
                f"{COLUMN_BYTES}"
            )
        self._data += value
        self._offsets.append(end)
        self._valid.append(True)

    def add_null(self) -> None:
        self._offsets.append(len(self._data))
        self._valid.append(False)

    def finish(self, into: Buffers) -> None:
        into += (_validity(self._valid), self._offsets.tobytes(), bytes(self._data))
        self._begin()

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self._valid)


class _Checked(_Text):
    """Strings as a peer sent them: octets that are no UTF-8 are shown in base64."""

    def add(self, value: bytes) -> None:
        try:
            value.decode()
        except UnicodeDecodeError:
            value = b"base64:" + b64encode(value)
        super().add(value)


class _Number:
    """A column of numbers, any of them null."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._valid: list[bool] = []
        self._values = array(form)

    def add(self, value: bytes) -> None:
        self.add_number(int.from_bytes(value))

    def add_number(self, value: int) -> None:
        """Append a row."""
        self._values.append(value)
        self._valid.append(True)

    def add_null(self) -> None:
        self._values.append(0)
        self._valid.append(False)

    def finish(self, into: Buffers) -> None:
        into += (_validity(self._valid), self._values.tobytes())
        self._valid = []
        self._values = array(self._form)


class _Time(_Number):
    """Seconds since 1970 as microseconds; null when those do not fit."""

    def add_number(self, value: int) -> None:
        if value > _LAST_SECOND:
            self.add_null()
        else:
            super().add_number(value * _MICROS)


class _Map:
    """The headers: the columns of all keys and of all values."""

    def __init__(self, headers_of: HeadersOf) -> None:
        self._headers_of = headers_of
        self._begin()

    def _begin(self) -> None:
        self._valid: list[bool] = []
        self._offsets = array("i", [0])
        self._keys = _Text()
        self._values = _Text()

    def add(self, value: bytes) -> None:
        for key, text in self._headers_of(value):
            self._keys.add(key)
            if text is None:
                self._values.add_null()
            else:
                self._values.add(text)
        self._end_row(True)

    def add_null(self) -> None:
        self._end_row(False)

    def _end_row(self, valid: bool) -> None:
        self._offsets.append(self._keys.rows)
        self._valid.append(valid)

    def finish(self, into: Buffers) -> None:
        into += (_validity(self._valid), self._offsets.tobytes())
        self._keys.finish(into)
        self._values.finish(into)
        self._begin()


class _Flags:
    """A column of booleans, none of them null."""

    def __init__(self) -> None:
        self._values: list[bool] = []

    def add(self, value: bytes) -> None:
        self._values.append(value != b"\0")

    def add_null(self) -> None:
        raise AssertionError("redelivered is never null")

    def finish(self, into: Buffers) -> None:
        into += (None, _bitmap(self._values))
        self._values = []


class ColumnSink(FrameSink):
    """Deliveries in, chunks of Arrow buffers out.

    Args:
        columns: the wanted columns, in their order.
        fields: the wanted fields of the column `properties`, in their order.
        queue: what the column `queue` says.
        position: the running number of the first delivery.
        most_rows: rows after which a chunk is closed.
        most_bytes: octets of messages after which a chunk is closed.
        headers_of: makes texts of a header table, given without its size.
        count_of: finds the delivery count in a header table; its second argument is `redelivered`.

    Attributes:
        rows: rows of the unfinished chunk.
        pending_rows: rows that were not taken yet.
        position: the running number of the next delivery.
        last_tag: the delivery tag of the last delivery; they are 1, 2, 3...
    """

    def __init__(
        self,
        columns: tuple[str, ...],
        fields: tuple[str, ...],
        queue: str,
        position: int,
        most_rows: int,
        most_bytes: int,
        headers_of: HeadersOf,
        count_of: CountOf,
    ) -> None:
        self.rows = 0
        self.pending_rows = 0
        self.position = position
        self.last_tag = 0
        self._queue = queue.encode()
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._bytes = 0
        self._count_of = count_of
        self._closed: list[tuple[int, int, list[tuple[int, int]], Buffers, int]] = []
        self._runs: list[tuple[int, int]] = []
        self._columns = columns
        makers: dict[str, Callable[[], Column]] = {
            "value": _Text,
            "routing_key": _Text,
            "exchange": _Text,
            "queue": _Text,
            "offset": lambda: _Number("q"),
            "delivery_count": lambda: _Number("i"),
            "redelivered": _Flags,
            "headers": lambda: _Map(headers_of),
        }
        self._by_name = {name: makers[name]() for name in columns if name in makers}
        self._fields = {name: _field(name) for name in fields}

    def deliver(
        self,
        channel: int,
        consumer_tag: str,
        tag: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> int:
        """One delivery; see `FrameSink.deliver`.

        Raises:
            HarebellError: the delivery tags have a gap.
        """
        if tag != self.last_tag + 1:
            raise HarebellError(
                f"delivery tag {tag} came after {self.last_tag}: deliveries of channel {channel} "
                "went elsewhere, so they cannot be acknowledged together"
            )
        values = {
            "value": body,
            "routing_key": routing_key.encode(),
            "exchange": exchange.encode(),
            "queue": self._queue,
            "offset": self.position.to_bytes(8),
            "redelivered": b"\1" if redelivered else b"\0",
        }
        for name, column in self._by_name.items():
            if name in values:
                column.add(values[name])
        self._add_properties(bool(redelivered), properties.raw)
        self.last_tag = tag
        self.position += 1
        self.rows += 1
        self.pending_rows += 1
        self._bytes += len(body) + len(properties.raw)
        if self.rows >= self._most_rows or self._bytes >= self._most_bytes:
            self._close()
        return 0

    def _add_properties(self, redelivered: bool, raw: bytes) -> None:
        found = _split(raw)
        for name, field in self._fields.items():
            value = found.get(name)
            if value is None:
                field.add_null()
            else:
                field.add(value)
        table = found.get("headers")
        headers = self._by_name.get("headers")
        if headers is not None and table is None:
            headers.add_null()
        elif headers is not None and table is not None:
            headers.add(table)
        count = self._by_name.get("delivery_count")
        if count is not None:
            times = int(redelivered)
            if table is not None and _COUNT_NAME in table:
                times = self._count_of(table, redelivered)
            assert isinstance(count, _Number)
            count.add_number(times)

    def stamp(self, micros: int) -> None:
        """Say when the deliveries arrived that came since the last time."""
        for _, rows, runs, _, _ in self._closed:
            _cover(runs, rows, micros)
        _cover(self._runs, self.rows, micros)

    def take(self, everything: bool) -> list[Chunk]:
        """The finished chunks; with `everything` the unfinished one too."""
        if everything and self.rows:
            self._close()
        closed, self._closed = self._closed, []
        self.pending_rows = self.rows
        chunks: list[Chunk] = []
        for first, rows, runs, buffers, time_at in closed:
            if time_at:
                buffers[time_at] = _times(runs, rows)
            chunks.append((first, rows, buffers))
        return chunks

    def _close(self) -> None:
        """Turn the rows so far into a chunk and begin a new one."""
        buffers: Buffers = []
        time_at = 0
        for name in self._columns:
            if name == "timestamp":
                # Filled in when the chunk is taken: the times are not known yet.
                buffers += (None, None)
                time_at = len(buffers) - 1
            elif name == "properties":
                for field in self._fields.values():
                    field.finish(buffers)
            else:
                self._by_name[name].finish(buffers)
        first = self.position - self.rows
        self._closed.append((first, self.rows, self._runs, buffers, time_at))
        self._runs = []
        self.rows = 0
        self._bytes = 0


def _field(name: str) -> Column:
    number = PROPERTY_NAMES.index(name)
    if number in _OCTETS:
        return _Number("i")
    return _Time("q") if number == _TIME else _Checked()


def _cover(runs: list[tuple[int, int]], rows: int, micros: int) -> None:
    """Append a run of equal times up to that row, unless it is reached already."""
    if rows and (not runs or runs[-1][0] < rows):
        runs.append((rows, micros))


def _times(runs: list[tuple[int, int]], rows: int) -> bytes:
    times = array("q")
    micros = 0
    for end, micros in runs:
        times.extend([micros] * (end - len(times)))
    times.extend([micros] * (rows - len(times)))
    return times.tobytes()


def _split(raw: bytes) -> dict[str, bytes]:
    """The octets of every property that is present, without their sizes."""
    if len(raw) < 2:
        raise _cut_off()
    flags = int.from_bytes(raw[:2])
    found: dict[str, bytes] = {}
    at = 2
    for number, name in enumerate(PROPERTY_NAMES):
        if not flags & (_FIRST_FLAG >> number):
            continue
        if at >= len(raw):
            raise _cut_off()
        if number == _HEADERS:
            start = at + 4
            end = start + int.from_bytes(raw[at:start])
        elif number in _OCTETS:
            start, end = at, at + 1
        elif number == _TIME:
            start, end = at, at + 8
        else:
            start = at + 1
            end = start + raw[at]
        if end > len(raw) or start > len(raw):
            raise _cut_off()
        found[name] = raw[start:end]
        at = end
    return found


def _cut_off() -> ProtocolError:
    return ProtocolError(502, "malformed content header: properties run over the end", 60, 0)
