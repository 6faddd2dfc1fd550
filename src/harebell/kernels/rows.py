"""Turn Arrow columns into messages; in pure Python, and in C in `rows.pyx`.

The opposite of `columns`: the buffers of a record batch become property lists, and then either
messages for the broker's queues or frames for a broker. The buffers are in one piece of memory;
`spans` has the start and the size of each, in the order of Arrow's record batches.

    column                                      buffers
    value, routing_key, exchange, headers_raw   validity, offsets, octets
    properties                                  validity, then each field: like a text, a 4-octet
                                                integer (delivery_mode, priority) or an 8-octet one
                                                (timestamp, in microseconds since 1970)
    headers                                     validity, offsets, validity of the entries,
                                                keys: validity, offsets, octets
                                                values: validity, offsets, octets

A validity of no octets means that no row is null. Offsets are 4-octet integers, one more than rows;
everything is little-endian. Nothing that a peer sent is trusted: every span, every offset and every
size is checked before it is used.

A row needs a `value`; any other null or missing column is left out, or has a default. Headers
become texts, a null among them void. `headers_raw` is a field table as AMQP encodes it, without its
size; where it is not null it is used instead of `headers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import unpack_from
from typing import NamedTuple

from harebell.base.errors import BatchError, ProtocolError
from harebell.base.limits import FRAME_OVERHEAD_BYTES, NAME_BYTES
from harebell.base.message import Message, Properties, new_message
from harebell.base.row_columns import (
    PROPERTY_NAMES,
    PUBLISHING_ID,
    check_columns,
    default_name,
)
from harebell.kernels.limits import LARGE_RECORD_BYTES
from harebell.kernels.output import OutBuffer
from harebell.kernels.properties import parse_properties
from harebell.kernels.publishing import unnumbered

_FIRST_FLAG = 0x8000
_NUMBERS = {"delivery_mode": "<i", "priority": "<i", "timestamp": "<q"}
"""How the fields that are no texts stand in their buffer."""
_MICROS = 1_000_000
_OCTET_MAX = 255
_NOTHING = memoryview(b"")
_HEADER_BYTES = 12
"""Of a content header before the property list: class, weight and body size (4.2.6)."""


class _Column(NamedTuple):
    """The buffers of one column: `fixed` has its offsets, or its numbers."""

    name: str
    valid: memoryview
    fixed: memoryview = _NOTHING
    data: memoryview = _NOTHING

    def null(self, row: int) -> bool:
        """True if a row has no value."""
        return bool(self.valid) and not self.valid[row >> 3] & (1 << (row & 7))

    def range(self, row: int, limit: int, at: int) -> tuple[int, int]:
        """Return where the octets, or the entries, of a row begin and end."""
        first, end = unpack_from("<ii", self.fixed, row * 4)
        # Arrow demands growing offsets; those of a peer are checked for each row.
        if first < 0 or end < first or end > limit:
            raise BatchError(f"row {at}: the offsets of {self.name} run over its octets")
        return first, end

    def text(self, row: int, at: int) -> bytes | None:
        """Return the octets of a row, which an error calls row `at`; None when it is null."""
        if self.null(row):
            return None
        first, end = self.range(row, len(self.data), at)
        return bytes(self.data[first:end])

    def short(self, row: int) -> bytes | None:
        """Return the octets of a row, of which a short string has at most 255."""
        text = self.text(row, row)
        return None if text is None else _short(text, self.name, row)


class Rows:
    """Turns the rows of record batches into messages or frames.

    Args:
        columns: those that the batches have, in their order.
        fields: those that the column `properties` has, in their order.
        exchange: of rows without one.
        routing_key: of rows without one.
        delivery_mode: of rows without one; 0 for none.

    Attributes:
        rows: how many the loaded batch has.
        number_from: each row gets a header `x-publishing-id`, its number in the batch plus this,
            in the place of one that it has; -1 for none.
        frame_max: a message whose properties need a larger frame is an error; 0 for any size.
        properties: of the message that was made last.

    Raises:
        BatchError: a column or field that there is not, or one twice; or no column `value`.
    """

    def __init__(
        self,
        columns: Sequence[str],
        fields: Sequence[str],
        exchange: str,
        routing_key: str,
        delivery_mode: int,
    ) -> None:
        check_columns(columns, fields)
        self.rows = 0
        self.number_from = -1
        self.frame_max = 0
        self.properties = Properties(b"\0\0")
        self._columns = tuple(columns)
        self._fields = tuple(fields)
        self._exchange = default_name(exchange, "exchange")
        self._key = default_name(routing_key, "routing_key")
        self._mode = delivery_mode
        self._data = _NOTHING
        self._spans: list[int] = []
        self._entries = 0
        self._loaded: dict[str, _Column] = {}

    def load(self, data: bytes, rows: int, entries: int, spans: Sequence[int]) -> int:
        """Set the batch, which replaces the one before.

        Args:
            data: the memory with the buffers.
            rows: the number of rows.
            entries: the number of entries of all headers.
            spans: start and size of every buffer.

        Raises:
            BatchError: a buffer is too small or missing.
        """
        self.rows = 0
        self._data, self._spans = memoryview(data), list(spans)
        self._loaded = {}
        self._entries = entries
        if rows < 0 or entries < 0:
            raise BatchError("the batch has less than no rows")
        for name in self._columns:
            if name == "properties":
                self._loaded[name] = _Column(name, self._validity(rows, name))
                for field in self._fields:
                    self._loaded[field] = self._column(rows, field)
            elif name == "headers":
                valid = self._validity(rows, name)
                self._loaded[name] = _Column(name, valid, self._offsets(rows, name))
                # Arrow's map is a list of structs, and a struct has validity bits of its own.
                # Entries are never null: the bits are only passed over.
                self._validity(entries, name)
                self._loaded["keys"] = self._column(entries, name)
                self._loaded["values"] = self._column(entries, name)
            else:
                self._loaded[name] = self._column(rows, name)
        # A buffer too many: the columns are not those that were declared, and the buffers were
        # taken for other columns.
        if self._spans:
            taken = (len(spans) - len(self._spans)) // 2
            raise BatchError(f"the batch has {len(spans) // 2} buffers, not {taken}")
        self.rows = rows
        return 0

    def _span(self, name: str) -> memoryview:
        if len(self._spans) < 2:
            raise BatchError(f"the batch has no buffer for {name}")
        start, size = self._spans[:2]
        del self._spans[:2]
        if start < 0 or size < 0 or start + size > len(self._data):
            raise BatchError(f"a buffer of {name} runs over the end of the batch")
        return self._data[start : start + size]

    def _validity(self, rows: int, name: str) -> memoryview:
        span = self._span(name)
        return _sized(span, name, "validity bits", (rows + 7) >> 3) if span else span

    def _offsets(self, rows: int, name: str) -> memoryview:
        return _sized(self._span(name), name, "offsets", (rows + 1) * 4 if rows else 0)

    def _column(self, rows: int, name: str) -> _Column:
        valid = self._validity(rows, name)
        if name in _NUMBERS:
            size = rows * (8 if name == "timestamp" else 4)
            return _Column(name, valid, _sized(self._span(name), name, "values", size))
        return _Column(name, valid, self._offsets(rows, name), self._span(name))

    # --- rows -----------------------------------------------------------------------------------

    def message(self, row: int) -> Message:
        """Return the message of a row; `properties` has its properties.

        Raises:
            BatchError: the row cannot become a message.
        """
        exchange, key, raw, body = self._row(row)
        _check_frame(raw, row, self.frame_max)
        # Rows mostly have equal properties: then the object of the last row is used again.
        if raw != self.properties.raw:
            try:
                self.properties = parse_properties(raw)
            except ProtocolError as error:
                raise BatchError(f"row {row}: {error.text}") from None
        return new_message(exchange, key, self.properties, body)

    def same_until(self, first: int, end: int) -> int:
        """Return where the rows end that differ from one in their bodies only.

        Args:
            first: the row.
            end: the row to stop at.

        Returns:
            The first row behind it that has another exchange, routing key or properties, that
            cannot become a message, or whose body is large; no large row has others behind it.

        Raises:
            BatchError: the row itself cannot become a message.
        """
        like = self._row(first)
        row = first + 1
        if len(like[3]) >= LARGE_RECORD_BYTES:
            return row
        while row < min(end, self.rows):
            try:
                other = self._row(row)
            except BatchError:
                break
            if other[:3] != like[:3] or len(other[3]) >= LARGE_RECORD_BYTES:
                break
            row += 1
        return row

    def body_bytes(self, first: int, end: int) -> int:
        """Return the size of the bodies of such rows, from `first` up to, not including, `end`."""
        return sum(len(self._row(row)[3]) for row in range(first, end))

    def publish(
        self, out: OutBuffer, channel: int, flags: int, frame_max: int, first: int, end: int
    ) -> int:
        """Append basic.publish with its content for every row from `first` up to `end`.

        Returns:
            How many rows that were.

        Raises:
            BatchError: a row cannot become a message; nothing is appended then.
        """
        # Rows are gathered here first: if one is wrong, `out` has none of them.
        buffer = OutBuffer()
        for row in range(first, end):
            exchange, key, raw, body = self._row(row)
            _check_frame(raw, row, frame_max)
            message = new_message(exchange, key, Properties(raw), body)
            buffer.publish(channel, flags, message, frame_max)
        out.raw(buffer.take())
        return max(end - first, 0)

    def _row(self, row: int) -> tuple[str, str, bytes, bytes]:
        if not 0 <= row < self.rows:
            raise BatchError(f"row {row}: the batch has {self.rows} rows")
        body = self._loaded["value"].text(row, row)
        if body is None:
            raise BatchError(f"row {row}: value is null, and a message needs a body")
        exchange = self._name("exchange", row, self._exchange)
        key = self._name("routing_key", row, self._key)
        return exchange, key, self._property_list(row), body

    def _name(self, name: str, row: int, default: str) -> str:
        text = self._loaded[name].short(row) if name in self._loaded else None
        try:
            return default if text is None else text.decode()
        except UnicodeDecodeError:
            raise BatchError(f"row {row}: {name} is not UTF-8") from None

    def _property_list(self, row: int) -> bytes:
        flags = 0
        values = b""
        struct = self._loaded.get("properties")
        there = struct is not None and not struct.null(row)
        for number, name in enumerate(PROPERTY_NAMES):
            if name == "headers":
                value = self._header_table(row)
            else:
                value = self._property(name, row) if there and name in self._loaded else None
            if value is None and name == "delivery_mode" and self._mode:
                value = bytes((self._mode,))
            if value is not None:
                flags |= _FIRST_FLAG >> number
                values += value
        return flags.to_bytes(2) + values

    def _property(self, name: str, row: int) -> bytes | None:
        """Return the encoded value of a property; None when it is null."""
        column = self._loaded[name]
        if name not in _NUMBERS:
            text = column.short(row)
            return None if text is None else bytes((len(text),)) + text
        if column.null(row):
            return None
        (number,) = unpack_from(
            _NUMBERS[name], column.fixed, row * (8 if name == "timestamp" else 4)
        )
        if name == "timestamp":
            if number < 0:
                raise BatchError(f"row {row}: {name} is before 1970")
            return bytes((number // _MICROS).to_bytes(8))
        if not 0 <= number <= _OCTET_MAX:
            raise BatchError(f"row {row}: {name} is {number}, and it is 0 to 255")
        return bytes((number,))

    def _header_table(self, row: int) -> bytes | None:
        raw = self._loaded["headers_raw"].text(row, row) if "headers_raw" in self._loaded else None
        table = self._mapped_headers(row) if raw is None else _checked_table(raw, row)
        if self.number_from >= 0:
            entry = bytes((len(PUBLISHING_ID),)) + PUBLISHING_ID + b"l"
            # A number of another publisher, in rows that were read from its queue, would count
            # instead.
            table = unnumbered(table or b"") + entry + (self.number_from + row).to_bytes(8)
        return None if table is None else len(table).to_bytes(4) + table

    def _mapped_headers(self, row: int) -> bytes | None:
        column = self._loaded.get("headers")
        if column is None or column.null(row):
            return None
        table = b""
        for entry in range(*column.range(row, self._entries, row)):
            key = self._loaded["keys"].text(entry, row)
            if key is None:
                raise BatchError(f"row {row}: a header has no name")
            name = _short(key, "the name of a header", row)
            value = self._loaded["values"].text(entry, row)
            table += bytes((len(name),)) + name
            table += b"V" if value is None else b"S" + len(value).to_bytes(4) + value
        return table


def _sized(span: memoryview, name: str, what: str, minimum: int) -> memoryview:
    if len(span) < minimum:
        raise BatchError(f"the {what} of {name} have {len(span)} octets, and {minimum} are needed")
    return span


def _check_frame(raw: bytes, row: int, frame_max: int) -> None:
    size = _HEADER_BYTES + len(raw) + FRAME_OVERHEAD_BYTES
    if 0 < frame_max < size:
        raise BatchError(
            f"row {row}: its properties and headers need a frame of {size} octets, and the most is "
            f"{frame_max}"
        )


def _checked_table(table: bytes, row: int) -> bytes:
    try:
        parse_properties(b"\x20\x00" + len(table).to_bytes(4) + table)
    except ProtocolError:
        raise BatchError(f"row {row}: headers_raw is no field table") from None
    return table


def _short(text: bytes, name: str, row: int) -> bytes:
    if len(text) > NAME_BYTES:
        raise BatchError(f"row {row}: {name} has {len(text)} octets, and the most is {NAME_BYTES}")
    return text
