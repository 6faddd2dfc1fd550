"""Turn deliveries into Arrow columns; in pure Python, and in C in `columns.pyx`.

A delivery becomes a row of every requested column. Enough rows are closed into a chunk `(position
of the first row, rows, buffers)`. The buffers follow each other in the order of the columns, in
Arrow's layout, so that assembling a record batch copies nothing:

    column                                  buffers
    value, routing_key, exchange, queue,    validity, offsets, octets
    headers_raw
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
from collections.abc import Callable

from harebell.base.errors import HarebellError, ProtocolError
from harebell.base.message import Properties
from harebell.kernels.arrays import (
    Buffers,
    Column,
    Flags,
    HeadersOf,
    Map,
    Number,
    Text,
    field_column,
    split_properties,
)
from harebell.kernels.frames import FrameSink

Chunk = tuple[int, int, Buffers]
CountOf = Callable[[bytes, bool], int]

_COUNT_NAME = b"\x10x-delivery-count"


class ColumnSink(FrameSink):
    """Deliveries in, chunks of Arrow buffers out.

    Args:
        columns: the wanted columns, in their order.
        fields: the wanted fields of the column `properties`, in their order.
        queue: the value of the column `queue`.
        position: the running number of the first delivery.
        max_rows: rows after which a chunk is closed.
        max_bytes: octets of messages after which a chunk is closed.
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
        max_rows: int,
        max_bytes: int,
        headers_of: HeadersOf,
        count_of: CountOf,
    ) -> None:
        self.rows = 0
        self.pending_rows = 0
        self.position = position
        self.last_tag = 0
        self._queue = queue.encode()
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._bytes = 0
        self._count_of = count_of
        self._closed: list[tuple[int, int, list[tuple[int, int]], Buffers, int]] = []
        self._runs: list[tuple[int, int]] = []
        self._columns = columns
        makers: dict[str, Callable[[], Column]] = {
            "value": Text,
            "routing_key": Text,
            "exchange": Text,
            "queue": Text,
            "offset": lambda: Number("q"),
            "delivery_count": lambda: Number("i"),
            "redelivered": Flags,
            "headers": lambda: Map(headers_of),
            "headers_raw": Text,
        }
        self._by_name = {name: makers[name]() for name in columns if name in makers}
        self._fields = {name: field_column(name) for name in fields}

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
        """Append a delivery as a row; see `FrameSink.deliver`.

        Raises:
            HarebellError: the delivery tags have a gap.
        """
        # A chunk is acknowledged by its last delivery tag with the bit `multiple`, so a gap would
        # be acknowledged as well.
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
        if self.rows >= self._max_rows or self._bytes >= self._max_bytes:
            self._close()
        return 0

    def _add_properties(self, redelivered: bool, raw: bytes) -> None:
        values = split_properties(raw)
        if values is None:
            raise _cut_off()
        for name, field in self._fields.items():
            value = values.get(name)
            if value is None:
                field.add_null()
            else:
                field.add(value)
        table = values.get("headers")
        for column in ("headers", "headers_raw"):
            headers = self._by_name.get(column)
            if headers is not None and table is None:
                headers.add_null()
            elif headers is not None and table is not None:
                headers.add(table)
        count = self._by_name.get("delivery_count")
        if count is not None:
            times = int(redelivered)
            # Searched first: decoding a table takes much longer, and few messages have the header.
            if table is not None and _COUNT_NAME in table:
                times = self._count_of(table, redelivered)
            assert isinstance(count, Number)
            count.add_number(times)

    def stamp(self, micros: int) -> None:
        """Set the arrival time of the deliveries since the last call."""
        for _, rows, runs, _, _ in self._closed:
            _cover(runs, rows, micros)
        _cover(self._runs, self.rows, micros)

    def take(self, everything: bool) -> list[Chunk]:
        """Return the finished chunks; with `everything` the unfinished one too."""
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
        """Finish the present chunk and begin a new one."""
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


def _cover(runs: list[tuple[int, int]], rows: int, micros: int) -> None:
    """Append a run of equal times up to a row, unless the runs reach it already."""
    if rows and (not runs or runs[-1][0] < rows):
        runs.append((rows, micros))


def _times(runs: list[tuple[int, int]], rows: int) -> bytes:
    times = array("q")
    micros = 0
    for end, micros in runs:
        times.extend([micros] * (end - len(times)))
    times.extend([micros] * (rows - len(times)))
    return times.tobytes()


def _cut_off() -> ProtocolError:
    return ProtocolError(502, "malformed content header: properties run over the end", 60, 0)
