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

from harebell.base.errors import HarebellError, ProtocolError
from harebell.base.message import Properties
from harebell.kernels.arrays import (
    Buffers,
    CountOf,
    HeadersOf,
    Row,
    arrays_of,
    buffers_of,
    count_in,
    kinds_of,
    split_properties,
)
from harebell.kernels.frames import FrameSink

Chunk = tuple[int, int, Buffers]


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
        self._queue = queue
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._headers_of = headers_of
        self._count_of = count_of
        self._fields = fields
        self._kinds = kinds_of(columns, fields)
        self._closed: list[tuple[int, list[Row]]] = []
        self._rows: list[Row] = []
        self._unstamped: list[Row] = []
        self._bytes = 0

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
        values = split_properties(properties.raw)
        if values is None:
            raise ProtocolError(502, "malformed content header: properties run over the end", 60, 0)
        table = values.get("headers")
        row: Row = {
            "value": body,
            "routing_key": routing_key,
            "exchange": exchange,
            "queue": self._queue,
            "offset": self.position,
            "timestamp": None,
            "redelivered": bool(redelivered),
            "properties": {name: values.get(name) for name in self._fields},
            "headers_raw": table,
        }
        if "headers" in self._kinds:
            row["headers"] = None if table is None else list(self._headers_of(table))
        if "delivery_count" in self._kinds:
            row["delivery_count"] = count_in(table, self._count_of, redelivered)
        self._rows.append(row)
        self._unstamped.append(row)
        self.last_tag = tag
        self.position += 1
        self.rows += 1
        self.pending_rows += 1
        self._bytes += len(body) + len(properties.raw)
        if self.rows >= self._max_rows or self._bytes >= self._max_bytes:
            self._close()
        return 0

    def stamp(self, micros: int) -> None:
        """Set the arrival time of the deliveries since the last call."""
        for row in self._unstamped:
            row["timestamp"] = micros
        self._unstamped = []

    def take(self, everything: bool) -> list[Chunk]:
        """Return the finished chunks; with `everything` the unfinished one too."""
        if everything and self.rows:
            self._close()
        closed, self._closed = self._closed, []
        self.pending_rows = self.rows
        return [(first, len(rows), self._buffers(rows)) for first, rows in closed]

    def _close(self) -> None:
        """Finish the present chunk and begin a new one."""
        self._closed.append((self.position - self.rows, self._rows))
        self._rows = []
        self.rows = 0
        self._bytes = 0

    def _buffers(self, rows: list[Row]) -> Buffers:
        micros = 0
        for row in rows:
            # A row that was not stamped yet has the time of the one before.
            micros = row["timestamp"] = micros if row["timestamp"] is None else row["timestamp"]
        buffers: Buffers = []
        for array, name in zip(arrays_of(rows, self._kinds), self._kinds, strict=True):
            of_array = buffers_of(array)
            # A struct is never null, and neither is an entry of a map: readers know it.
            if name == "properties":
                del of_array[0]
            elif name == "headers":
                del of_array[2]
            buffers += of_array
        return buffers
