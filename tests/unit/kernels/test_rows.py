"""The rows kernel: columns as Arrow has them become messages and frames, alike in C and Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from harebell.base.errors import BatchError
from harebell.base.row_columns import FIELDS
from harebell.kernels.limits import LARGE_RECORD_BYTES
from harebell.kernels.output import OutBuffer
from harebell.kernels.publishing import publishing_id
from harebell.wire.arrow.decode import DecodedBatch, decode_batch
from harebell.wire.v09.content import decode_properties, parse_properties
from harebell.wire.v09.fields import encode_table
from tests.unit.kernels.twins import twin, used

KERNELS = [pytest.param(used("rows"), id="used"), pytest.param(twin("rows"), id="twin")]
EACH = pytest.mark.parametrize("kernel", KERNELS)

TIME = pa.timestamp("us", "UTC")
STRUCT = pa.struct(
    [
        (name, pa.int32() if name in ("delivery_mode", "priority") else pa.string())
        if name != "timestamp"
        else (name, TIME)
        for name in FIELDS
    ]
)
SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("routing_key", pa.string()),
        ("exchange", pa.string()),
        ("properties", STRUCT),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("headers_raw", pa.binary()),
    ]
)
EVERYTHING = tuple(SCHEMA.names)
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)


def octets(rows: list[dict[str, Any]], names: Sequence[str]) -> bytes:
    """The record batch message that pyarrow makes of rows."""
    schema = pa.schema([SCHEMA.field(name) for name in names])
    filled = [{name: row.get(name) for name in names} for row in rows]
    batch = pa.RecordBatch.from_pylist(filled, schema=schema)
    return bytes(batch.serialize().to_pybytes())


def loaded(
    kernel: ModuleType,
    rows: list[dict[str, Any]],
    names: Sequence[str] = ("value",),
    exchange: str = "",
    routing_key: str = "",
    mode: int = 0,
) -> Any:
    """A reader of rows with a batch in it."""
    fields = FIELDS if "properties" in names else ()
    message = octets(rows, names)
    found = decode_batch(message, names, fields)
    reader = kernel.Rows(names, fields, exchange, routing_key, mode)
    reader.load(message, *found)
    return reader


def seen(message: Any) -> tuple[Any, ...]:
    """What a message is."""
    return (
        message.exchange,
        message.routing_key,
        message.raw,
        message.body,
        message.delivery_mode,
        message.priority,
        bool(message.has_headers),
    )


@EACH
def test_a_value_alone_becomes_a_message_with_the_defaults(kernel: ModuleType) -> None:
    reader = loaded(kernel, [{"value": b"one"}, {"value": b""}], exchange="ex", routing_key="k")
    assert reader.rows == 2
    assert seen(reader.message(0)) == ("ex", "k", b"\0\0", b"one", 0, -1, False)
    assert reader.message(1).body == b""


@EACH
def test_every_column_reaches_the_message(kernel: ModuleType) -> None:
    row = {
        "value": b"\xff\0",
        "routing_key": "grün",
        "exchange": "orders",
        "properties": {
            "content_type": "a/b",
            "content_encoding": "gzip",
            "delivery_mode": 1,
            "priority": 7,
            "correlation_id": "c",
            "reply_to": "r",
            "expiration": "60000",
            "message_id": "m",
            "timestamp": NOON,
            "type": "t",
            "user_id": "guest",
            "app_id": "app",
            "cluster_id": "",
        },
        "headers": [("tenant", "a"), ("none", None)],
    }
    reader = loaded(kernel, [row], EVERYTHING, exchange="ex", mode=2)
    message = reader.message(0)
    assert (message.exchange, message.routing_key, message.body) == ("orders", "grün", b"\xff\0")
    assert (message.delivery_mode, message.priority) == (1, 7)
    found = decode_properties(message.raw)
    assert found.headers == {"tenant": "a", "none": None}
    assert found.timestamp == NOON
    wanted = {name: value for name, value in row["properties"].items() if name != "timestamp"}
    assert {name: getattr(found, name) for name in wanted} == wanted
    assert reader.properties.suspect, "an expiration has to be looked at"
    assert seen(message)[2] == parse_properties(message.raw).raw


@EACH
def test_a_null_value_is_left_out_or_has_its_default(kernel: ModuleType) -> None:
    rows = [
        {"value": b"1"},
        {"value": b"2", "properties": {}},
        {"value": b"3", "headers": []},
        {"value": b"4", "routing_key": "", "exchange": ""},
    ]
    reader = loaded(kernel, rows, EVERYTHING, exchange="ex", routing_key="k", mode=2)
    assert reader.message(0).raw == reader.message(1).raw == b"\x10\0\2"
    assert reader.message(2).raw == b"\x30\0\0\0\0\0\2"
    assert (reader.message(0).exchange, reader.message(0).routing_key) == ("ex", "k")
    assert (reader.message(3).exchange, reader.message(3).routing_key) == ("", "")


@EACH
def test_raw_headers_stand_instead_of_the_map_and_keep_their_types(kernel: ModuleType) -> None:
    table = {"n": 5, "list": [1, "a"], "when": NOON}
    raw = encode_table(table)[4:]
    reader = loaded(
        kernel, [{"value": b"", "headers": [("n", "x")], "headers_raw": raw}], EVERYTHING
    )
    assert decode_properties(reader.message(0).raw).headers == table


@EACH
def test_rows_are_numbered_when_that_is_wanted(kernel: ModuleType) -> None:
    rows = [{"value": b"0"}, {"value": b"1", "headers": [("a", "b")]}]
    reader = loaded(kernel, rows, ("value", "headers"))
    reader.number_from = 2**40
    assert decode_properties(reader.message(0).raw).headers == {"x-publishing-id": 2**40}
    found = decode_properties(reader.message(1).raw).headers
    assert found == {"a": "b", "x-publishing-id": 2**40 + 1}


@EACH
def test_a_number_stands_instead_of_that_of_another_publisher(kernel: ModuleType) -> None:
    # As a queue gives them whose messages came with numbers.
    table = {"a": [1], "x-publishing-id": 7, "x-publishing-ids": 8, "z": {"x-publishing-id": 9}}
    raw = bytes(encode_table(table))[4:]
    twice = raw + b"\x0fx-publishing-idV"
    rows: list[dict[str, Any]] = [
        {"value": b"", "headers": [("x-publishing-id", "7"), ("b", None), ("x-publishing-i", "1")]},
        {"value": b"", "headers_raw": raw},
        {"value": b"", "headers_raw": twice},
    ]
    reader = loaded(kernel, rows, ("value", "headers", "headers_raw"))
    assert reader.message(1).raw[6:] == raw
    reader.number_from = 100
    found = [reader.message(row).raw for row in range(3)]
    assert [publishing_id(one) for one in found] == [100, 101, 102]
    assert decode_properties(found[0]).headers == {
        "b": None,
        "x-publishing-i": "1",
        "x-publishing-id": 100,
    }
    assert decode_properties(found[1]).headers == table | {"x-publishing-id": 101}
    assert decode_properties(found[2]).headers == table | {"x-publishing-id": 102}
    assert all(one.count(b"\x0fx-publishing-id") <= 2 for one in found)


@EACH
def test_frames_are_those_that_the_messages_would_become(kernel: ModuleType) -> None:
    rows = [
        {"value": b"x" * size, "routing_key": f"k{size}", "headers": [("n", str(size))]}
        for size in (0, 1, 4088, 4089, 9000)
    ]
    reader = loaded(kernel, rows, ("value", "routing_key", "headers"), exchange="ex", mode=2)
    out, wanted = OutBuffer(), OutBuffer()
    wanted.raw(b"before")
    out.raw(b"before")
    for row in range(1, 5):
        wanted.publish(3, 1, reader.message(row), 4096)
    assert reader.publish(out, 3, 1, 4096, 1, 5) == 4
    assert out.take() == wanted.take()
    assert reader.publish(out, 3, 1, 4096, 5, 5) == 0
    assert out.take() == b""


@EACH
@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"value": None}, "row 1: value is null, and a message needs a body"),
        ({"routing_key": "k" * 256}, "row 1: routing_key has 256 octets, and the most is 255"),
        ({"exchange": "é" * 128}, "row 1: exchange has 256 octets, and the most is 255"),
        (
            {"properties": {"message_id": "m" * 300}},
            "row 1: message_id has 300 octets, and the most is 255",
        ),
        ({"properties": {"priority": 256}}, "row 1: priority is 256, and it is 0 to 255"),
        ({"properties": {"delivery_mode": -1}}, "row 1: delivery_mode is -1, and it is 0 to 255"),
        (
            {"properties": {"timestamp": datetime(1969, 1, 1, tzinfo=UTC)}},
            "row 1: timestamp is before 1970",
        ),
        (
            {"headers": [("h" * 256, "")]},
            "row 1: the name of a header has 256 octets, and the most is 255",
        ),
        ({"headers_raw": b"\3abc"}, "row 1: headers_raw is no field table"),
    ],
)
def test_a_row_that_is_no_message_is_named_and_nothing_is_sent(
    kernel: ModuleType, row: dict[str, Any], error: str
) -> None:
    reader = loaded(kernel, [{"value": b"good"}, {"value": b"", **row}], EVERYTHING)
    out = OutBuffer()
    with pytest.raises(BatchError) as caught:
        reader.message(1)
    assert str(caught.value) == error
    with pytest.raises(BatchError) as caught:
        reader.publish(out, 1, 0, 4096, 0, 2)
    assert str(caught.value) == error
    assert len(out) == 0
    assert reader.message(0).body == b"good"


@EACH
def test_a_name_that_is_no_utf_8_is_refused(kernel: ModuleType) -> None:
    names = ("value", "routing_key")
    message = octets([{"value": b"v", "routing_key": "rout"}], names).replace(b"rout", b"ro\xfft")
    reader = kernel.Rows(names, (), "", "", 0)
    reader.load(message, *decode_batch(message, names, ()))
    for call in (lambda: reader.message(0), lambda: reader.publish(OutBuffer(), 1, 0, 4096, 0, 1)):
        with pytest.raises(BatchError, match="row 0: routing_key is not UTF-8"):
            call()


@EACH
def test_a_row_that_is_not_there_is_an_error(kernel: ModuleType) -> None:
    reader = loaded(kernel, [{"value": b""}])
    for row in (-1, 1):
        with pytest.raises(BatchError, match=f"row {row}: the batch has 1 rows"):
            reader.message(row)
    empty = kernel.Rows(("value",), (), "", "", 0)
    with pytest.raises(BatchError, match="row 0: the batch has 0 rows"):
        empty.message(0)


@EACH
def test_spans_that_are_not_in_the_batch_are_refused(kernel: ModuleType) -> None:
    reader = kernel.Rows(("value",), (), "", "", 0)
    for spans, error in (
        ((), "the batch has no buffer for value"),
        ((0, 0, 0, 8, 8), "the batch has no buffer for value"),
        ((0, 0, 0, 8, 17, 0), "a buffer of value runs over the end"),
        ((0, 0, 0, 8, -1, 3), "a buffer of value runs over the end"),
        ((0, 0, 0, 8, 8, 2**62), "a buffer of value runs over the end"),
        ((0, 0, 0, 7, 8, 1), "the offsets of value have 7 octets, and 8 are needed"),
        ((0, 0, 0, 8, 8, 1, 0, 0), "the batch has 4 buffers, not 3"),
    ):
        with pytest.raises(BatchError, match=error):
            reader.load(bytes(16), 1, 0, spans)
        assert reader.rows == 0
    with pytest.raises(BatchError, match="the validity bits of value have 1 octets, and 2"):
        reader.load(bytes(64), 9, 0, (0, 1, 0, 40, 40, 0))
    with pytest.raises(BatchError, match="less than no rows"):
        reader.load(b"", -1, 0, ())


@EACH
@pytest.mark.parametrize("pair", [(0, 9), (-1, 2), (3, 2)])
def test_offsets_that_lead_astray_are_refused(kernel: ModuleType, pair: tuple[int, int]) -> None:
    data = b"".join(each.to_bytes(4, "little", signed=True) for each in pair) + b"12345678"
    reader = kernel.Rows(("value",), (), "", "", 0)
    reader.load(data, 1, 0, (0, 0, 0, 8, 8, 8))
    with pytest.raises(BatchError, match="row 0: the offsets of value run over its octets"):
        reader.message(0)


def test_both_kernels_say_the_same_of_octets_that_were_changed_at_random() -> None:
    rng = random.Random(7)
    rows = [
        {
            "value": rng.randbytes(rng.randrange(9)),
            "routing_key": rng.choice(["a", "key", None]),
            "properties": {"message_id": f"m{number}", "priority": number, "timestamp": NOON},
            "headers": [("h", str(number))] if number % 2 else None,
            "headers_raw": encode_table({"n": number})[4:] if number % 5 == 0 else None,
        }
        for number in range(20)
    ]
    good = octets(rows, EVERYTHING)
    readers = [each.values[0].Rows(EVERYTHING, FIELDS, "", "k", 1) for each in KERNELS]
    start = min(decode_batch(good, EVERYTHING, FIELDS).spans[1::2])
    failed = 0
    for _ in range(300):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(start, len(data))] = rng.choice((0, 1, 0x7F, 0xFF))
        said = [_said(reader, bytes(data)) for reader in readers]
        assert said[0] == said[1]
        failed += any(isinstance(each, str) for each in said[0])
    assert failed, "nothing was damaged enough to be refused"


def _said(reader: Any, data: bytes) -> list[Any]:
    """What becomes of each row, or of the batch."""
    found: DecodedBatch
    try:
        found = decode_batch(data, EVERYTHING, FIELDS)
        reader.load(data, *found)
    except BatchError as error:
        return [str(error)]
    said: list[Any] = []
    for row in range(found.rows):
        out = OutBuffer()
        try:
            said.append(seen(reader.message(row)))
            reader.publish(out, 1, 0, 4096, row, row + 1)
            said.append(out.take())
        except BatchError as error:
            said.append(str(error))
    return said


@EACH
def test_properties_that_need_a_larger_frame_are_named(kernel: ModuleType) -> None:
    rows = [{"value": b"1"}, {"value": b"2", "headers": [("a", "x" * 4_000)]}]
    found = loaded(kernel, rows, ("value", "headers"))
    size = 8 + 14 + 4 + 2 + 5 + 4_000
    assert found.publish(OutBuffer(), 1, 0, size, 0, 2) == 2
    said = rf"row 1: .* need a frame of {size} octets, and the most is {size - 1}"
    with pytest.raises(BatchError, match=said):
        found.publish(OutBuffer(), 1, 0, size - 1, 0, 2)
    assert found.message(1).body == b"2"
    found.frame_max = size - 1
    assert found.message(0).body == b"1"
    with pytest.raises(BatchError, match=said):
        found.message(1)


ALIKE = {"value": b"body", "routing_key": "k", "exchange": "x"}
CHANGES: list[dict[str, Any]] = [
    {"routing_key": "l"},
    {"routing_key": "kk"},
    {"exchange": "y"},
    {"properties": {"priority": 3}},
    {"headers": [("a", "b")]},
    {"headers_raw": encode_table({"a": 1})},
    {"value": None},
    {"value": bytes(LARGE_RECORD_BYTES)},
    {"properties": {"priority": 300}},
    {"routing_key": "k" * 256},
]


@EACH
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_rows_are_the_same_up_to_one_that_differs_in_more_than_its_body(
    kernel: ModuleType, change: dict[str, Any]
) -> None:
    every = [ALIKE | {"value": b"%d" % number * number} for number in range(5)]
    reader = loaded(kernel, [*every, ALIKE | change, ALIKE], EVERYTHING)
    assert reader.same_until(0, 7) == 5
    assert reader.same_until(2, 7) == 5
    assert reader.same_until(2, 4) == 4
    assert reader.same_until(6, 99) == 7
    assert reader.body_bytes(0, 5) == 0 + 1 + 2 + 3 + 4


@EACH
def test_a_default_is_the_same_as_a_name_that_is_given(kernel: ModuleType) -> None:
    names = ("value", "routing_key", "exchange")
    bare = {"value": b"", "routing_key": None, "exchange": None}
    every = [ALIKE, bare, ALIKE, bare | {"exchange": "other"}]
    assert loaded(kernel, every, names, "x", "k").same_until(0, 4) == 3
    assert loaded(kernel, every, names, "x", "k").same_until(1, 4) == 3
    assert loaded(kernel, every, names, "z", "k").same_until(1, 4) == 2


@EACH
def test_numbered_rows_and_large_ones_are_the_same_as_no_other(kernel: ModuleType) -> None:
    reader = loaded(kernel, [{"value": b"a"}] * 3)
    assert reader.same_until(0, 3) == 3
    reader.number_from = 7
    assert reader.same_until(0, 3) == 1
    large = loaded(kernel, [{"value": bytes(LARGE_RECORD_BYTES)}] * 2)
    assert large.same_until(0, 2) == 1


@EACH
def test_a_row_that_is_no_message_is_the_same_as_none(kernel: ModuleType) -> None:
    reader = loaded(kernel, [{"value": None}, {"value": b"a"}])
    with pytest.raises(BatchError, match="row 0: value is null"):
        reader.same_until(0, 2)
    with pytest.raises(BatchError, match="row 2: the batch has 2 rows"):
        reader.same_until(2, 3)
