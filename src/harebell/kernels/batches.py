"""Turn records of a log into the buffers of an Arrow record batch; `batches.pyx` is the same in C.

A record that passes the filter becomes a row of every requested column, without a `Message` in
between. A full batch is finished as `rows, nodes, buffers`, which `harebell.wire.arrow.encode`
makes an Arrow message of:

    column                                  nodes        buffers
    value, texts, headers_json, headers_raw 1            validity, offsets, octets
    offset, timestamp                       1            validity, 8-octet integers
    delivery_count                          1            validity, 4-octet integers
    redelivered                             1            none, bits
    properties                              1, and of    none, then those of every wanted field
                                            each field
    headers                                 4            validity, offsets, none,
                                                         keys: three, values: three

A node is (rows, nulls). A truncated property list, or a malformed header table, is its publisher's
mistake and no reason to refuse the message: the columns that it should fill are null.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from harebell.base.errors import ProtocolError
from harebell.base.message import FAMILY_09, Message
from harebell.kernels.arrays import (
    Buffers,
    CountOf,
    HeadersOf,
    Nodes,
    Row,
    arrays_of,
    buffers_of,
    count_in,
    kinds_of,
    nodes_of,
    split_properties,
)

Test = Callable[[bytes, bytes, bytes, bytes, int, int, int, bool], bool]

_OF_PROPERTIES = {"properties", "delivery_count", "headers", "headers_json", "headers_raw"}
_ROW_BYTES = 32
_MILLIS = 1000
_LAST_MILLISECOND = (2**63 - 1) // _MILLIS


class BatchBuilder:
    """Records in, the buffers of a record batch out.

    Args:
        columns: the wanted columns, in their order.
        fields: the wanted fields of the column `properties`, in their order.
        queue: the value of the column `queue`.
        headers_of: makes texts of a header table, given without its size.
        json_of: makes JSON of it.
        count_of: finds the delivery count in it; its second argument is `redelivered`.
        convert: makes a message of class basic of one of another protocol family.

    Raises:
        ValueError: pyarrow is missing, which only the uncompiled half needs.

    Attributes:
        rows: rows so far.
        full: whether a limit is reached, or no further record can be added.
        count: how many deliveries of the next record have failed.
        skip: whether records that cannot be read are passed over.
        bad: the position of the record that could not be read, and ended the batch; -1.
        lost: how many positions were passed over.
    """

    def __init__(
        self,
        columns: tuple[str, ...],
        fields: tuple[str, ...],
        queue: str,
        headers_of: HeadersOf,
        json_of: Callable[[bytes], bytes],
        count_of: CountOf,
        convert: Callable[[Message], Message],
    ) -> None:
        self._kinds = kinds_of(columns, fields)
        self._fields = fields
        self._queue = queue
        self._headers_of = headers_of
        self._json_of = json_of
        self._count_of = count_of
        self._convert = convert
        self.skip = False
        self.limit(1, 1, 1)
        self.filter(None, False, 0, 0)
        self.where(None)
        self.marks(0, 0, None, None, None)
        self.at_level(0, 0)
        self._begin()

    def _begin(self) -> None:
        self._rows: list[Row] = []
        self.rows = 0
        self.full = False
        self.count = 0
        self.bad = -1
        self.lost = 0
        self._byte_count = 0
        self._scanned = 0

    def limit(self, rows: int, byte_count: int, scanned: int) -> None:
        """Set when the batch is full.

        Args:
            rows: its number of rows.
            byte_count: the size of its rows in bytes.
            scanned: the size of all records that were examined, in the batch or not.
        """
        self._max_rows = rows
        self._max_bytes = byte_count
        self._max_scanned = scanned

    def filter(self, key: bytes | None, prefix: bool, since: int, until: int) -> None:
        """Set which records become rows.

        Args:
            key: the routing key of the records; None for any.
            prefix: whether routing keys that begin with `key` pass as well.
            since: the earliest time of a record, in milliseconds since 1970.
            until: the time from which on records do not pass; 0 for any.
        """
        self._wanted_key = key
        self._prefix = prefix
        self._since = since
        self._until = until

    def where(self, test: Test | None) -> None:
        """Set the test of records that pass the filter.

        Args:
            test: called with exchange, routing key, properties and body, the time, the value of
                the column `offset`, how many deliveries have failed, and whether the message
                counts as delivered before; None for all.
        """
        self._test = test

    def marks(
        self,
        cursor: int,
        seen: int,
        held: Collection[int] | None,
        fresh: Collection[int] | None,
        ask: Callable[[int], bool] | None,
    ) -> None:
        """Set which positions count as delivered before, beside those whose delivery failed.

        Args:
            cursor: positions below it were delivered, unless they are in `fresh`.
            seen: other positions below it may have been delivered before the start.
            held: further delivered positions, unless they are in `fresh`; None for none.
            fresh: positions that do not count as redelivered after all; None for none.
            ask: decides instead of all these; None for no such function.
        """
        self._cursor = cursor
        self._seen = seen
        self._held = held
        self._fresh = fresh
        self._ask = ask

    def at_level(self, shift: int, level: int) -> None:
        """Set the level of the positions: the column `offset` has both."""
        self._shift = shift
        self._level = level

    def message(self, message: Message, position: int) -> int:
        """Append a message as a row, if it passes the filter."""
        failed = self.count + message.deliveries
        if message.family != FAMILY_09:
            message = self._convert(message)
        key, exchange = message.routing_key.encode(), message.exchange.encode()
        raw, body = message.raw, message.body
        # Counted before the filter: a filter that nothing passes must end the turn as well.
        self._scanned += _ROW_BYTES + len(exchange) + len(key) + len(raw) + len(body)
        if self._scanned >= self._max_scanned:
            self.full = True
        if not self._passes(message.timestamp, key):
            return 0
        again = self._again(position)
        offset = position << self._shift | self._level
        # After the cheap filter: the test decodes properties or the body.
        if self._test is not None and not self._test(
            exchange, key, raw, body, message.timestamp, offset, failed, again
        ):
            return 0
        sized = {"value": body, "routing_key": key, "exchange": exchange}
        time = message.timestamp
        self._byte_count += _ROW_BYTES
        self._byte_count += sum(len(sized[name]) for name in sized if name in self._kinds)
        row: Row = {
            **sized,
            "queue": self._queue,
            "offset": offset,
            "timestamp": time * _MILLIS if 0 < time <= _LAST_MILLISECOND else None,
            "redelivered": again,
        }
        if self._kinds.keys() & _OF_PROPERTIES:
            self._byte_count += len(raw)
            row |= self._from_properties(raw, again, failed)
        self._rows.append(row)
        self.rows += 1
        if self.rows >= self._max_rows or self._byte_count >= self._max_bytes:
            self.full = True
        return 0

    def damaged(self, position: int) -> bool:
        """Note a record that cannot be read; True if the batch goes on behind it."""
        if self.skip:
            self.lost += 1
            return True
        self.bad = position
        self.full = True
        return False

    def gone(self, positions: int) -> None:
        """Count positions that no longer exist."""
        self.lost += positions

    def _passes(self, time: int, key: bytes) -> bool:
        if time < self._since or (self._until and time >= self._until):
            return False
        if self._wanted_key is None:
            return True
        return key.startswith(self._wanted_key) if self._prefix else key == self._wanted_key

    def _again(self, position: int) -> bool:
        """Whether a message counts as delivered before."""
        if self.count > 0:
            return True
        if self._ask is not None:
            return bool(self._ask(position))
        if position < self._cursor or (self._held is not None and position in self._held):
            return self._fresh is None or position not in self._fresh
        return position < self._seen

    def _from_properties(self, raw: bytes, again: bool, failed: int) -> Row:
        values = split_properties(raw) or {}
        table = values.get("headers")
        makers: dict[str, Callable[[], object]] = {
            "properties": lambda: {name: values.get(name) for name in self._fields},
            "delivery_count": lambda: failed or count_in(table, self._count_of, again),
            "headers": lambda: None if table is None else list(self._headers_of(table)),
            "headers_json": lambda: None if table is None else self._json_of(table),
            "headers_raw": lambda: table,
        }
        row: Row = {}
        for name in self._kinds.keys() & _OF_PROPERTIES:
            try:
                row[name] = makers[name]()
            except ProtocolError:
                row[name] = int(again) if name == "delivery_count" else None
        return row

    def finish(self) -> tuple[int, Nodes, Buffers]:
        """Return the batch so far (rows, nodes, buffers) and start a new one."""
        nodes: Nodes = []
        buffers: Buffers = []
        for array in arrays_of(self._rows, self._kinds):
            nodes += nodes_of(array)
            buffers += buffers_of(array)
        rows = self.rows
        self._begin()
        return rows, nodes, buffers
