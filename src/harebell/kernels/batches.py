"""Records of a log to the buffers of an Arrow record batch; in pure Python, and in C in `.pyx`.

A record that passes the filter becomes a row of every wanted column, without a `Message` in
between. A batch that is full is finished into `rows, nodes, buffers`, what
`harebell.wire.arrow.encode` makes a message of:

    column                                  nodes        buffers
    value, texts, headers_json, headers_raw 1            validity, offsets, octets
    offset, timestamp                       1            validity, 8-octet integers
    delivery_count                          1            validity, 4-octet integers
    redelivered                             1            none, bits
    properties                              1, and of    none, then those of every wanted field
                                            each field
    headers                                 4            validity, offsets, none,
                                                         keys: three, values: three

A node is (rows, nulls). A property list that is cut off, or a header table that cannot be read, is
its publisher's mistake and no reason to refuse the message: what it should have said is null.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection

from harebell.base.errors import ProtocolError
from harebell.base.message import FAMILY_09, Message
from harebell.kernels.arrays import (
    Buffers,
    Checked,
    Column,
    Flags,
    HeadersOf,
    Map,
    Nodes,
    Number,
    Text,
    Time,
)

CountOf = Callable[[bytes, bool], int]
Test = Callable[[bytes, bytes, bytes, bytes, int, int, int, bool], bool]

_NAMES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id",
    "reply_to", "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip
_HEADERS = _NAMES.index("headers")
_OCTETS = (_NAMES.index("delivery_mode"), _NAMES.index("priority"))
_TIME = _NAMES.index("timestamp")
_FIRST_FLAG = 0x8000
_COUNT_NAME = b"\x10x-delivery-count"
_ROW_BYTES = 32
_MILLIS = 1000
_LAST_MILLISECOND = (2**63 - 1) // _MILLIS
_LONGLONG = struct.Struct(">q")


class BatchBuilder:
    """Records in, the buffers of a record batch out.

    Args:
        columns: the wanted columns, in their order.
        fields: the wanted fields of the column `properties`, in their order.
        queue: what the column `queue` says.
        headers_of: makes texts of a header table, given without its size.
        json_of: makes JSON of it.
        count_of: finds the delivery count in it; its second argument is `redelivered`.
        convert: makes a message of class basic of one of another protocol family.

    Attributes:
        rows: rows so far.
        full: there is enough, or nothing more to be had.
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
        self._columns = columns
        self._queue = queue.encode()
        self._headers_of = headers_of
        self._json_of = json_of
        self._count_of = count_of
        self._convert = convert
        self.skip = False
        makers: dict[str, Callable[[], Column]] = {
            "value": Text,
            "routing_key": Checked,
            "exchange": Checked,
            "queue": Text,
            "offset": lambda: Number("q"),
            "timestamp": lambda: Number("q"),
            "redelivered": Flags,
            "delivery_count": lambda: Number("i"),
            "headers": lambda: Map(headers_of),
            "headers_json": Text,
            "headers_raw": Text,
        }
        self._by_name = {name: makers[name]() for name in columns if name in makers}
        self._fields = {name: _field(name) for name in fields}
        about = ("delivery_count", "headers", "headers_json", "headers_raw")
        self._reads_properties = bool(fields) or any(name in columns for name in about)
        self.limit(1, 1, 1)
        self.filter(None, False, 0, 0)
        self.where(None)
        self.marks(0, 0, None, None, None)
        self.at_level(0, 0)
        self._begin()

    def _begin(self) -> None:
        self.rows = 0
        self.full = False
        self.count = 0
        self.bad = -1
        self.lost = 0
        self._byte_count = 0
        self._scanned = 0

    def limit(self, rows: int, byte_count: int, scanned: int) -> None:
        """Say when the batch is full.

        Args:
            rows: with so many rows.
            byte_count: with rows of so many octets.
            scanned: when so many octets were looked at, in the batch or not.
        """
        self._max_rows = rows
        self._max_bytes = byte_count
        self._max_scanned = scanned

    def filter(self, key: bytes | None, prefix: bool, since: int, until: int) -> None:
        """Say which records become rows.

        Args:
            key: those with this routing key; None for any.
            prefix: or those whose routing key begins with it.
            since: those of this time (milliseconds since 1970) or later.
            until: those of an earlier time than this; 0 for any.
        """
        self._wanted_key = key
        self._prefix = prefix
        self._since = since
        self._until = until

    def where(self, test: Test | None) -> None:
        """Say which records that pass the filter become rows.

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
        """Say which positions count as delivered before, beside those whose delivery failed.

        Args:
            cursor: those below it,
            held: and these, unless they are in
            fresh: these.
            seen: of the others those below it.
            ask: says it instead of all that.
        """
        self._cursor = cursor
        self._seen = seen
        self._held = held
        self._fresh = fresh
        self._ask = ask

    def at_level(self, shift: int, level: int) -> None:
        """Positions are those of a level: the column `offset` has both."""
        self._shift = shift
        self._level = level

    def message(self, message: Message, position: int) -> int:
        """Make a message a row, if it passes the filter."""
        if message.family != FAMILY_09:
            message = self._convert(message)
        key, exchange = message.routing_key.encode(), message.exchange.encode()
        raw, body = message.raw, message.body
        self._scanned += _ROW_BYTES + len(exchange) + len(key) + len(raw) + len(body)
        if self._scanned >= self._max_scanned:
            self.full = True
        if not self._passes(message.timestamp, key):
            return 0
        again = self._again(position)
        offset = position << self._shift | self._level
        if self._test is not None and not self._test(
            exchange, key, raw, body, message.timestamp, offset, self.count, again
        ):
            return 0
        values: dict[str, tuple[bytes | None, int]] = {
            "value": (body, len(body)),
            "routing_key": (key, len(key)),
            "exchange": (exchange, len(exchange)),
            "queue": (self._queue, 0),
            "offset": (_LONGLONG.pack(offset), 0),
            "timestamp": (_micros(message.timestamp), 0),
            "redelivered": (b"\1" if again else b"\0", 0),
        }
        self._byte_count += _ROW_BYTES
        for name, column in self._by_name.items():
            if name in values:
                value, byte_count = values[name]
                self._byte_count += byte_count
                _add(column, value)
        if self._reads_properties:
            self._add_properties(raw, again)
            self._byte_count += len(raw)
        self.rows += 1
        if self.rows >= self._max_rows or self._byte_count >= self._max_bytes:
            self.full = True
        return 0

    def damaged(self, position: int) -> bool:
        """A record cannot be read: whether to go on behind it."""
        if self.skip:
            self.lost += 1
            return True
        self.bad = position
        self.full = True
        return False

    def gone(self, positions: int) -> None:
        """So many positions are not there any more."""
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

    def _add_properties(self, raw: bytes, again: bool) -> None:
        found = _split(raw)
        for name, field in self._fields.items():
            _add(field, found.get(name))
        table = found.get("headers")
        by_name = self._by_name
        if "headers" in by_name:
            _add_readable(by_name["headers"], table)
        if "headers_json" in by_name:
            _add(by_name["headers_json"], self._made_json(table))
        if "headers_raw" in by_name:
            _add(by_name["headers_raw"], table)
        counts = by_name.get("delivery_count")
        if counts is not None:
            assert isinstance(counts, Number), "made above"
            counts.add_number(self._count_in(table, again))

    def _made_json(self, table: bytes | None) -> bytes | None:
        try:
            return None if table is None else self._json_of(table)
        except ProtocolError:
            return None

    def _count_in(self, table: bytes | None, again: bool) -> int:
        if self.count > 0:
            return self.count
        if table is not None and _COUNT_NAME in table:
            try:
                return self._count_of(table, again)
            except ProtocolError:
                return int(again)
        return int(again)

    def finish(self) -> tuple[int, Nodes, Buffers]:
        """Return the batch so far (rows, nodes, buffers) and start a new one."""
        rows = self.rows
        nodes: Nodes = []
        buffers: Buffers = []
        for name in self._columns:
            if name != "properties":
                self._by_name[name].end(nodes, buffers)
                continue
            nodes.append((rows, 0))
            buffers.append(None)
            for field in self._fields.values():
                field.end(nodes, buffers)
        self._begin()
        return rows, nodes, buffers


def _field(name: str) -> Column:
    number = _NAMES.index(name)
    if number in _OCTETS:
        return Number("i")
    return Time("q") if number == _TIME else Checked()


def _add(column: Column, value: bytes | None) -> None:
    if value is None:
        column.add_null()
    else:
        column.add(value)


def _add_readable(column: Column, table: bytes | None) -> None:
    try:
        _add(column, table)
    except ProtocolError:
        column.add_null()


def _micros(millis: int) -> bytes | None:
    """A time as the column has it; a store in memory has none, and one that is damaged too much."""
    return _LONGLONG.pack(millis * _MILLIS) if 0 < millis <= _LAST_MILLISECOND else None


def _split(raw: bytes) -> dict[str, bytes]:
    """The octets of every property, without their sizes; nothing if the list is cut off."""
    if len(raw) < 2:
        return {}
    flags = int.from_bytes(raw[:2])
    found: dict[str, bytes] = {}
    at = 2
    for number, name in enumerate(_NAMES):
        if not flags & (_FIRST_FLAG >> number):
            continue
        if at >= len(raw):
            return {}
        if number == _HEADERS:
            start = at + 4
            size = int.from_bytes(raw[at:start])
        elif number in _OCTETS:
            start, size = at, 1
        elif number == _TIME:
            start, size = at, 8
        else:
            start, size = at + 1, raw[at]
        if start > len(raw) or start + size > len(raw):
            return {}
        found[name] = raw[start : start + size]
        at = start + size
    return found
