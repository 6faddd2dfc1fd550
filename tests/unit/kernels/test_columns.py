"""The columns kernel: rows as Arrow wants them, and the same from C and from Python."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from harebell.base.errors import HarebellError, ProtocolError
from harebell.base.message import Properties
from harebell.kernels.columns import ColumnSink
from harebell.spark.reading.rows.arrow_batches import arrow_schema, record_batch
from harebell.spark.schema import EVERYTHING, MESSAGE, select
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from harebell.wire.v09.fields import decode_table
from harebell.wire.v09.header_texts import count_of, headers_of
from tests.unit.kernels.agreeing import printed_by_both

NONE = parse_properties(b"\0\0")
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)


def sink(
    schema: StructType = MESSAGE, position: int = 0, rows: int = 1000, size: int = 10**6
) -> Any:
    chosen = select(schema)
    return ColumnSink(
        chosen.columns, chosen.fields, "q", position, rows, size, headers_of, count_of
    )


def only(*names: str) -> StructType:
    return StructType([MESSAGE[name] for name in names])


def properties(**values: Any) -> Properties:
    return parse_properties(encode_properties(BasicProperties(**values)))


def deliver(
    to: Any,
    tag: int,
    body: bytes = b"body",
    props: Properties = NONE,
    redelivered: bool = False,
    exchange: str = "e",
    key: str = "k",
) -> None:
    to.deliver(1, "consumer", tag, redelivered, exchange, key, props, body)


def batches(of: Any, schema: StructType = MESSAGE) -> list[pa.RecordBatch]:
    made = [record_batch(chunk, arrow_schema(schema)) for chunk in of.take(True)]
    for batch in made:
        batch.validate(full=True)
    return made


def rows(of: Any, schema: StructType = MESSAGE) -> list[dict[str, Any]]:
    return [row for batch in batches(of, schema) for row in batch.to_pylist()]


def test_a_delivery_becomes_a_row_of_every_column() -> None:
    to = sink(position=41)
    props = properties(
        content_type="text/plain",
        content_encoding="utf-8",
        headers={"a": 1, "b": None, "c": "x", "d": True},
        delivery_mode=2,
        priority=9,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=NOON,
        type="t",
        user_id="guest",
        app_id="app",
        cluster_id="cl",
    )
    deliver(to, 1, b"\x00\xff", props, redelivered=True, exchange="ex", key="schlüssel")
    to.stamp(1_357_041_600_000_000)
    [row] = rows(to)
    assert dict(row.pop("headers")) == {"a": "1", "b": None, "c": "x", "d": "true"}
    assert row == {
        "value": b"\x00\xff",
        "routing_key": "schlüssel",
        "exchange": "ex",
        "queue": "q",
        "offset": 41,
        "timestamp": NOON,
        "redelivered": True,
        "delivery_count": 1,
        "properties": {
            "content_type": "text/plain",
            "content_encoding": "utf-8",
            "delivery_mode": 2,
            "priority": 9,
            "correlation_id": "c",
            "reply_to": "r",
            "expiration": "60000",
            "message_id": "m",
            "timestamp": NOON,
            "type": "t",
            "user_id": "guest",
            "app_id": "app",
            "cluster_id": "cl",
        },
    }


def test_fields_that_a_message_lacks_are_null() -> None:
    to = sink()
    deliver(to, 1, b"")
    to.stamp(0)
    [row] = rows(to)
    assert row["value"] == b""
    assert row["headers"] is None
    assert set(row["properties"].values()) == {None}
    assert (row["redelivered"], row["delivery_count"]) == (False, 0)


def test_an_empty_header_table_is_an_empty_map() -> None:
    to = sink(only("headers"))
    deliver(to, 1, props=properties(headers={}))
    deliver(to, 2)
    deliver(to, 3, props=properties(headers={"a": 1}))
    assert rows(to, only("headers")) == [
        {"headers": []},
        {"headers": None},
        {"headers": [("a", "1")]},
    ]


def test_only_the_wanted_columns_are_built_in_the_wanted_order() -> None:
    schema = only("offset", "value")
    to = sink(schema)
    deliver(to, 1, props=properties(headers={"a": 1}))
    [(first, count, buffers)] = to.take(True)
    assert (first, count, len(buffers)) == (0, 1, 2 + 3)
    deliver(to, 2)
    assert rows(to, schema) == [{"offset": 1, "value": b"body"}]


def test_a_chunk_is_closed_when_it_has_enough_rows() -> None:
    to = sink(rows=3, position=10)
    for tag in range(1, 9):
        deliver(to, tag)
    assert to.pending_rows == 8
    assert [chunk[:2] for chunk in to.take(False)] == [(10, 3), (13, 3)]
    assert to.pending_rows == 2
    assert [chunk[:2] for chunk in to.take(True)] == [(16, 2)]
    assert to.take(True) == []
    assert (to.position, to.last_tag) == (18, 8)


def test_a_chunk_is_closed_when_it_has_enough_octets() -> None:
    to = sink(size=100)
    for tag in range(1, 5):
        deliver(to, tag, b"x" * 60)
    assert [chunk[:2] for chunk in to.take(False)] == [(0, 2), (2, 2)]


def test_rows_have_the_time_at_which_they_were_stamped() -> None:
    schema = only("timestamp")
    to = sink(schema, rows=3)
    deliver(to, 1)
    deliver(to, 2)
    to.stamp(1_000_000)
    deliver(to, 3)
    deliver(to, 4)
    to.stamp(2_000_000)
    seconds = [row["timestamp"].timestamp() for row in rows(to, schema)]
    assert seconds == [1, 1, 2, 2]


def test_every_bit_of_redelivered_is_in_its_place() -> None:
    schema = only("redelivered")
    to = sink(schema)
    pattern = [bool(number % 3 == 0 or number % 7 == 1) for number in range(100)]
    for number, again in enumerate(pattern):
        deliver(to, number + 1, redelivered=again)
    assert [row["redelivered"] for row in rows(to, schema)] == pattern


def test_a_gap_in_the_delivery_tags_is_an_error() -> None:
    to = sink()
    deliver(to, 1)
    with pytest.raises(HarebellError, match="delivery tag 3 came after 1"):
        deliver(to, 3)


def test_a_delivery_count_is_taken_from_the_header() -> None:
    schema = only("delivery_count")
    to = sink(schema)
    deliver(to, 1, props=properties(headers={"x-delivery-count": 4}), redelivered=True)
    deliver(to, 2, props=properties(headers={"other": 4}), redelivered=True)
    deliver(to, 3)
    assert [row["delivery_count"] for row in rows(to, schema)] == [4, 1, 0]


def test_text_that_is_no_utf8_is_shown_in_base64() -> None:
    to = sink(only("properties", "headers"))
    raw = b"\x84\x00" + b"\x02\xff\xfe" + b"\x02\xc3\xa9"
    deliver(to, 1, props=parse_properties(raw))
    [row] = rows(to, only("properties", "headers"))
    assert row["properties"]["content_type"] == "base64://4="
    assert row["properties"]["correlation_id"] == "é"


def test_a_time_that_does_not_fit_is_null() -> None:
    to = sink(only("properties"))
    for tag, seconds in enumerate((0, 9_223_372_036_854, 9_223_372_036_855, 2**64 - 1), 1):
        deliver(to, tag, props=parse_properties(b"\x00\x40" + seconds.to_bytes(8)))
    [batch] = batches(to, only("properties"))
    times = batch["properties"].field("timestamp").cast(pa.int64()).to_pylist()
    assert times == [0, 9_223_372_036_854_000_000, None, None]


@pytest.mark.parametrize(
    "raw", [b"", b"\x80", b"\x80\x00", b"\x80\x00\x05abc", b"\x20\x00\0\0\0\x09", b"\x00\x40\0\0"]
)
def test_properties_that_are_cut_off_are_an_error(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match="properties run over the end"):
        deliver(sink(), 1, props=Properties(raw))


AGREE = r"""
import hashlib, random
from harebell.base import impl
from harebell.kernels.columns import ColumnSink
from harebell.wire.v09.fields import decode_table
from harebell.wire.v09.header_texts import count_of, headers_of
from harebell.spark.schema import EVERYTHING, MESSAGE, select
from harebell.wire.v09.content import parse_properties
from tests.unit.kernels.agreeing import RandomProperties

rng = random.Random(20130101)
NAMES = (b"a", b"b", b"x-delivery-count", b"\xc3\xa9", b"\xff", b"")
TEXTS = (b"", b"text", b"gr\xc3\xbc\xc3\x9fe", b"\xff\xfe", b"x" * 300)

raw = RandomProperties(rng, NAMES, TEXTS).raw

chosen = select(MESSAGE)
digest = hashlib.sha256()
sink = ColumnSink(chosen.columns, chosen.fields, "q", 5, 37, 9000, headers_of, count_of)
rows = 0
for tag in range(1, 4001):
    body = rng.randbytes(rng.randrange(300))
    key = rng.choice(("", "k", "schl\u00fcssel"))
    sink.deliver(1, "c", tag, rng.random() < 0.5, "e", key, parse_properties(raw()), body)
    if rng.random() < 0.1:
        sink.stamp(rng.randrange(10**15))
        for first, count, buffers in sink.take(rng.random() < 0.3):
            rows += count
            digest.update(repr((first, count, buffers)).encode())
for chunk in sink.take(True):
    rows += chunk[1]
    digest.update(repr(chunk).encode())
print(impl.chosen(), rows, digest.hexdigest())
"""


def test_the_compiled_and_the_python_columns_agree_to_the_octet() -> None:
    rows_made, _ = printed_by_both(AGREE)
    assert rows_made == "4000"


def test_the_raw_header_table_is_there_where_it_is_asked_for() -> None:
    schema = StructType([EVERYTHING["headers_raw"], EVERYTHING["value"]])
    to = sink(schema)
    deliver(to, 1, b"first", properties(headers={"a": 1, "b": "x"}, priority=1))
    deliver(to, 2, b"none")
    found = rows(to, schema)
    assert [row["value"] for row in found] == [b"first", b"none"]
    table = found[0]["headers_raw"]
    assert decode_table(len(table).to_bytes(4) + table)[0] == {"a": 1, "b": "x"}
    assert found[1]["headers_raw"] is None
