"""Rows that cannot become messages: found by columns, before any of them is sent.

    value is null                               a name, key or property of more than 255 bytes
    expiration is no number of milliseconds     priority or delivery mode not from 0 to 255
    a text is no UTF-8                          timestamp before 1970
    headers are larger than a frame             headers_raw is no field table

One such row would stop a query for good: its micro-batch is repeated with the same rows. With
`badRows=dead-letter` it becomes a message of the same batch to the dead-letter exchange:

    value, routing_key, properties, headers     the row's own, as far as they are valid
    headers x-reason, x-original-exchange       why, and where it should have gone

All checks are of whole columns; only the rows that they find are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from harebell.base.errors import ProtocolError
from harebell.base.expiration import EXPIRATION_MAX_MS, problem_with
from harebell.base.limits import NAME_BYTES
from harebell.kernels.properties import parse_properties
from harebell.spark.limits import SPARK_HEADER_BYTES
from harebell.spark.options.sink_options import DROP, FAIL, SinkOptions
from harebell.spark.writing.advice import BAD_ROW_MEND
from harebell.spark.writing.write_target import SinkError

REASON, EXCHANGE = "x-reason", "x-original-exchange"
_OCTETS = ("delivery_mode", "priority")
_OCTET_MAX = 255
_SURELY_VALID = rf"^[0-9]{{1,{len(str(EXPIRATION_MAX_MS)) - 1}}}$"
_ENTRY_BYTES = 6
"""Of a header beside its name and value: two lengths and the type."""
_KEPT = (
    *("content_type", "content_encoding", "correlation_id", "reply_to", "message_id", "type"),
    "app_id",
)
"""Properties of a row that a dead letter keeps: it does not expire, and is of no other user."""
LETTER_COLUMNS = ",".join(
    ("value", "exchange", "routing_key", *(f"properties.{name}" for name in _KEPT), "headers")
)
"""The columns of dead letters, in the notation of class stage."""
_LETTER = pa.schema(
    [
        ("value", pa.binary()),
        ("exchange", pa.string()),
        ("routing_key", pa.string()),
        ("properties", pa.struct([(name, pa.string()) for name in _KEPT])),
        ("headers", pa.map_(pa.string(), pa.string())),
    ]
)
_Check = tuple[pa.BooleanArray, str]
"""Which rows are bad, null for no, and why."""


class BadRows:
    """Sort out the rows of a task that cannot become messages.

    Args:
        options: of the sink.

    Attributes:
        letters: dead letters that were not taken yet.
        count: number of bad rows so far.
    """

    def __init__(self, options: SinkOptions) -> None:
        self.letters: list[pa.RecordBatch] = []
        self.count = 0
        self._options = options
        self._seen = 0

    def without(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that can become messages.

        Raises:
            SinkError: others cannot, and the option badRows says that this is an error.
        """
        first, self._seen = self._seen, self._seen + rows.num_rows
        reasons: dict[int, str] = {}
        for mask, reason in _checks(rows):
            for row in pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist():
                reasons.setdefault(row, reason)
        if not reasons:
            return rows
        if self._options.bad_rows == FAIL:
            row = min(reasons)
            raise SinkError(f"row {first + row}: {reasons[row]}; {BAD_ROW_MEND}")
        self.count += len(reasons)
        bad = pa.array(sorted(reasons))
        if self._options.bad_rows != DROP:
            bad_records = rows.take(bad)
            self.letters.append(
                self._letters(bad_records, [reasons[row] for row in sorted(reasons)])
            )
        kept = pc.invert(pc.is_in(pa.array(range(rows.num_rows)), bad))
        return rows.filter(kept)

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield the dead letters since the last call."""
        records, self.letters = self.letters, []
        yield from records

    def _letters(self, rows: pa.RecordBatch, reasons: list[str]) -> pa.RecordBatch:
        letters = []
        for number, reason in enumerate(reasons):
            row = {name: _plain(rows.column(name), number) for name in rows.schema.names}
            letters.append(self._letter(row, reason))
        return pa.RecordBatch.from_pylist(letters, schema=_LETTER)

    def _letter(self, row: dict[str, Any], reason: str) -> dict[str, Any]:
        options = self._options
        key = options.routing_key if options.routing_key is not None else row.get("routing_key")
        to = options.exchange if options.exchange is not None else row.get("exchange")
        properties = row.get("properties") or {}
        headers = row.get("headers") or []
        # The headers of the letter must fit into a frame, with the reason and the exchange.
        if sum(_size(each) + _ENTRY_BYTES for pair in headers for each in pair) > _KEPT_BYTES:
            headers = []
        kept = [(k, v) for k, v in headers if _fits(k) and _is_text(v) and k not in _ADDED]
        return {
            "value": row.get("value") or b"",
            "exchange": options.dead_letter,
            "routing_key": _clipped(key),
            "properties": {name: properties[name] for name in _KEPT if _fits(properties.get(name))},
            "headers": [*kept, (REASON, reason), (EXCHANGE, _clipped(to))],
        }


_ADDED = (REASON, EXCHANGE)
_KEPT_BYTES = SPARK_HEADER_BYTES // 2


def _checks(rows: pa.RecordBatch) -> Iterator[_Check]:
    """Yield a mask of the bad rows for each reason."""
    for name in rows.schema.names:
        column = rows.column(name)
        if name == "value":
            yield column.is_null(), "value is null, and a message needs a body"
        elif name in ("routing_key", "exchange"):
            yield from _text(name, column)
        elif name == "properties":
            for field in column.type:
                yield from _property(field.name, pc.struct_field(column, field.name))
        elif name == "headers":
            yield from _headers(column)
        elif name == "headers_raw":
            yield _raw(column), "headers_raw is no field table, or too large for a frame"


def _text(name: str, column: pa.Array) -> Iterator[_Check]:
    yield _too_long(column), f"{name} has more than {NAME_BYTES} bytes"
    yield _no_text(column), f"{name} is not UTF-8"


def _property(name: str, column: pa.Array) -> Iterator[_Check]:
    if name in _OCTETS:
        wrong = pc.or_(pc.less(column, 0), pc.greater(column, _OCTET_MAX))
        yield wrong, f"{name} is not from 0 to {_OCTET_MAX}"
    elif name == "timestamp":
        yield pc.less(column.cast(pa.int64()), 0), "timestamp is before 1970"
    else:
        yield from _text(name, column)
        if name == "expiration":
            said = f"expiration is no number of milliseconds up to {EXPIRATION_MAX_MS}"
            yield _no_expiration(column.cast(pa.binary())), said


def _no_expiration(column: pa.Array) -> pa.Array:
    # All digits and short: the usual texts need no look at each of them.
    valid = pc.match_substring_regex(column, _SURELY_VALID)
    if pc.all(pc.fill_null(valid, True)).as_py():
        return pa.nulls(len(column), pa.bool_())
    texts = ((each or b"").decode(errors="replace") for each in column.to_pylist())
    wrong = pa.array([bool(problem_with(each)) for each in texts])
    return pc.and_(column.is_valid(), wrong)


def _headers(column: pa.Array) -> Iterator[_Check]:
    """Check the names, texts and sizes of headers by their flat columns."""
    names, values = column.keys, column.items
    if not len(names):
        return
    for mask, reason in (
        (_too_long(names), f"the name of a header has more than {NAME_BYTES} bytes"),
        (pc.or_kleene(_no_text(names), _no_text(values)), "a header is not UTF-8"),
    ):
        if pc.any(pc.fill_null(mask, False)).as_py():
            entries = pc.cast(pc.fill_null(mask, False), pa.int64())
            yield pc.greater(_per_row(column, entries), 0), reason
    sizes = pc.add(
        pc.add(pc.binary_length(names), pc.fill_null(pc.binary_length(values), 0)), _ENTRY_BYTES
    ).cast(pa.int64())
    if pc.sum(sizes).as_py() > SPARK_HEADER_BYTES:
        too_large = pc.greater(_per_row(column, sizes), SPARK_HEADER_BYTES)
        yield too_large, f"headers have more than {SPARK_HEADER_BYTES} bytes"


def _per_row(column: pa.Array, numbers: pa.Array) -> pa.Array:
    """Return the sum of the numbers of each row's entries."""
    sums = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(numbers)])
    # The entries of a slice are those of the whole, and so are the offsets.
    ends = column.offsets
    count = len(column)
    return pc.subtract(sums.take(ends.slice(1, count)), sums.take(ends.slice(0, count)))


def _raw(column: pa.Array) -> pa.Array:
    """Return which field tables are malformed; these are read one by one."""
    return pa.array([each is not None and _malformed(each) for each in column.to_pylist()])


def _malformed(table: bytes) -> bool:
    if len(table) > SPARK_HEADER_BYTES:
        return True
    try:
        # Property flags with the bit of `headers` alone, and the table as a long string.
        parse_properties(b"\x20\x00" + len(table).to_bytes(4) + table)
    except ProtocolError:
        return True
    return False


def _too_long(column: pa.Array) -> pa.Array:
    return pc.greater(pc.binary_length(column), NAME_BYTES)


def _no_text(column: pa.Array) -> pa.Array:
    """Return which values are not UTF-8: Spark lets texts have any bytes."""
    binary = column.cast(pa.binary())
    try:
        binary.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([not _is_text(each) for each in binary.to_pylist()])
    return pa.nulls(len(column), pa.bool_())


def _plain(column: pa.Array, row: int) -> Any:
    """Return a value as Python's; texts as bytes, which may be no UTF-8."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.slice(row, 1).cast(pa.binary())[0].as_py()
    if pa.types.is_struct(column.type):
        if not column[row].is_valid:
            return None
        return {each.name: _plain(pc.struct_field(column, each.name), row) for each in column.type}
    if pa.types.is_map(column.type):
        one = column.slice(row, 1)
        if not one[0].is_valid:
            return None
        first, end = one.offsets[0].as_py(), one.offsets[1].as_py()
        pairs = range(first, end)
        return [(_plain(column.keys, n), _plain(column.items, n)) for n in pairs]
    return column[row].as_py()


def _size(text: bytes | None) -> int:
    return 0 if text is None else len(text)


def _is_text(text: bytes | None) -> bool:
    try:
        return text is None or text.decode() is not None
    except UnicodeDecodeError:
        return False


def _fits(text: Any) -> bool:
    return isinstance(text, bytes) and len(text) <= NAME_BYTES and _is_text(text)


def _clipped(text: bytes | str | None) -> str:
    """Return a text as far as it fits into a name."""
    data = text.encode() if isinstance(text, str) else text or b""
    return data[:NAME_BYTES].decode(errors="ignore")
