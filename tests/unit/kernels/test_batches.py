"""The batches kernel: records as Arrow wants them, and the same from C and from Python."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from harebell.base.message import FAMILY_010, Message, Properties
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.records import RecordBuffer, append_to
from harebell.wire.arrow.columns import COLUMNS, FIELDS, selection
from harebell.wire.arrow.encode import record_batch, schema_message
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.header_texts import count_of, headers_of, json_of
from tests.unit.kernels.agreeing import printed_by_both

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
NOON_MS = 1_357_041_600_000
ALL = ",".join(COLUMNS)
PLENTY = 10**9


def builder(columns: str = ALL, rows: int = 1000, convert: Any = None) -> Any:
    wanted = selection(columns)
    made = BatchBuilder(
        wanted.columns, wanted.fields, "q", headers_of, json_of, count_of, convert or unwanted
    )
    made.limit(rows, PLENTY, PLENTY)
    return made


def unwanted(message: Message) -> Message:
    raise AssertionError("nothing is to be converted")


def message(
    body: bytes = b"body",
    key: str = "k",
    raw: bytes | None = None,
    time: int = NOON_MS,
    **props: Any,
) -> Message:
    raw = encode_properties(BasicProperties(**props)) if raw is None else raw
    made = Message("e", key, Properties(raw), body)
    made.timestamp = time
    return made


def batch(of: Any, columns: str = ALL) -> pa.RecordBatch:
    schema = pa.ipc.read_schema(pa.py_buffer(schema_message(selection(columns).schema())))
    data = record_batch(*of.finish(), None)
    made = pa.ipc.read_record_batch(pa.py_buffer(data), schema)
    made.validate(full=True)
    return made


def rows(of: Any, columns: str = ALL) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = batch(of, columns).to_pylist()
    return found


def test_a_message_becomes_a_row_of_every_column() -> None:
    to = builder()
    props = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "headers": {"a": 1, "b": None, "c": "x", "d": True},
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
    }
    to.message(message(b"\x00\xff", "schlüssel", **props), 41)
    [row] = rows(to)
    assert dict(row.pop("headers")) == {"a": "1", "b": None, "c": "x", "d": "true"}
    raw = row.pop("headers_raw")
    assert headers_of(raw) == [(b"a", b"1"), (b"b", None), (b"c", b"x"), (b"d", b"true")]
    assert row == {
        "value": b"\x00\xff",
        "routing_key": "schlüssel",
        "exchange": "e",
        "queue": "q",
        "offset": 41,
        "timestamp": NOON,
        "redelivered": False,
        "delivery_count": 0,
        "properties": {name: props[name] for name in FIELDS},
        "headers_json": '{"a":1,"b":null,"c":"x","d":true}',
    }


def test_fields_that_a_message_lacks_are_null() -> None:
    to = builder()
    to.message(message(b"", time=0), 0)
    [row] = rows(to)
    assert row["value"] == b""
    assert (row["headers"], row["headers_json"], row["headers_raw"]) == (None, None, None)
    assert row["timestamp"] is None
    assert set(row["properties"].values()) == {None}


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x80", b"\x80\x00", b"\x80\x00\x05abc", b"\x20\x00\0\0\0\x09", b"\x00\x40\0\0"],
)
def test_a_property_list_that_is_cut_off_says_nothing(raw: bytes) -> None:
    to = builder()
    to.message(message(b"one", raw=raw), 0)
    to.message(message(b"two", app_id="a"), 1)
    first, second = rows(to)
    assert first["value"] == b"one"
    assert set(first["properties"].values()) == {None}
    assert (first["headers"], first["headers_json"]) == (None, None)
    assert second["properties"]["app_id"] == "a"


def test_a_header_table_that_cannot_be_read_is_null_but_for_its_octets() -> None:
    table = b"\x01a?nonsense"
    to = builder("headers,headers_json,headers_raw,delivery_count")
    to.message(message(raw=b"\x20\x00" + len(table).to_bytes(4) + table), 0)
    to.message(message(headers={"a": 1}), 1)
    first, second = rows(to, "headers,headers_json,headers_raw,delivery_count")
    assert first == {
        "headers": None,
        "headers_json": None,
        "headers_raw": table,
        "delivery_count": 0,
    }
    assert second["headers"] == [("a", "1")]


def test_only_the_wanted_columns_and_fields_are_built_in_the_wanted_order() -> None:
    columns = "offset,properties.app_id,properties.priority,value"
    to = builder(columns)
    to.message(message(app_id="a", headers={"a": 1}), 7)
    assert rows(to, columns) == [
        {"offset": 7, "properties": {"app_id": "a", "priority": None}, "value": b"body"}
    ]


@pytest.mark.parametrize(
    ("limits", "expected"), [((3, PLENTY, PLENTY), 3), ((9, 100, PLENTY), 2), ((9, PLENTY, 100), 2)]
)
def test_a_batch_is_full_at_each_of_its_limits(limits: tuple[int, int, int], expected: int) -> None:
    to = builder("value")
    to.limit(*limits)
    count = 0
    while not to.full:
        to.message(message(b"x" * 40), count)
        count += 1
    assert (count, to.rows) == (expected, expected)
    to.finish()
    assert (to.full, to.rows) == (False, 0)


def test_a_test_is_called_for_what_passes_the_filter_and_may_end_the_batch() -> None:
    to = builder("offset,redelivered")
    calls: list[tuple[Any, ...]] = []

    def test(*called: Any) -> bool:
        calls.append(called)
        to.full = len(calls) == 2
        return called[3] != b"no"

    to.filter(b"a", False, 0, 0)
    to.where(test)
    to.at_level(1, 1)
    to.marks(1, 0, None, None, None)
    for position, (key, body) in enumerate([("a", b"yes"), ("b", b"yes"), ("a", b"no")]):
        assert not to.full
        to.message(message(body, key, app_id="x"), position)
    assert to.full
    raw = encode_properties(BasicProperties(app_id="x"))
    assert calls == [
        (b"e", b"a", raw, b"yes", NOON_MS, 1, 0, True),
        (b"e", b"a", raw, b"no", NOON_MS, 5, 0, False),
    ]
    assert rows(to, "offset,redelivered") == [{"offset": 1, "redelivered": True}]


def test_an_error_of_a_test_is_raised() -> None:
    to = builder("offset")

    def test(*_: Any) -> bool:
        raise ValueError("it takes too long")

    to.where(test)
    with pytest.raises(ValueError, match="it takes too long"):
        to.message(message(), 0)
    assert to.rows == 0


def test_a_filter_passes_by_key_and_time() -> None:
    def passed(*filter_: Any) -> list[int]:
        to = builder("offset")
        to.filter(*filter_)
        for position, (key, time) in enumerate(
            [("a", 10), ("a.b", 20), ("b", 30), ("", 40), ("a", 50)]
        ):
            to.message(message(key=key, time=time), position)
        return [row["offset"] for row in rows(to, "offset")]

    assert passed(None, False, 0, 0) == [0, 1, 2, 3, 4]
    assert passed(b"a", False, 0, 0) == [0, 4]
    assert passed(b"a", True, 0, 0) == [0, 1, 4]
    assert passed(b"", False, 0, 0) == [3]
    assert passed(b"", True, 20, 40) == [1, 2]
    assert passed(b"a", False, 20, 0) == [4]


def test_positions_decide_which_messages_count_as_delivered_before() -> None:
    to = builder("redelivered,delivery_count")
    to.marks(3, 5, {8}, {1}, None)
    for position in range(10):
        to.message(message(), position)
    to.count = 4
    to.message(message(), 10)
    found = [
        (row["redelivered"], row["delivery_count"])
        for row in rows(to, "redelivered,delivery_count")
    ]
    again = [True, False, True, True, True, False, False, False, True, False]
    assert found == [*((each, int(each)) for each in again), (True, 4)]


def test_a_caller_may_say_which_messages_were_delivered_before() -> None:
    to = builder("redelivered")
    to.marks(100, 100, None, None, lambda position: position == 1)
    for position in range(3):
        to.message(message(), position)
    assert [row["redelivered"] for row in rows(to, "redelivered")] == [False, True, False]


def test_a_delivery_count_is_taken_from_the_header() -> None:
    to = builder("delivery_count")
    to.message(message(headers={"x-delivery-count": 4}), 0)
    to.message(message(headers={"other": 4}), 1)
    assert [row["delivery_count"] for row in rows(to, "delivery_count")] == [4, 0]


def test_a_position_of_a_level_has_the_level_in_it() -> None:
    to = builder("offset")
    to.at_level(8, 3)
    to.message(message(), 5)
    assert rows(to, "offset") == [{"offset": 5 << 8 | 3}]


def test_messages_of_other_families_are_converted() -> None:
    other = Message("e", "k", Properties(b"?", family=FAMILY_010), b"strange")
    to = builder("value", convert=lambda message: Message("e", "k", Properties(b"\0\0"), b"basic"))
    to.message(other, 0)
    records = RecordBuffer(0, 7)
    records.message(1, NOON_MS, other, True)
    assert records.append_to(0, 1, to)
    assert [row["value"] for row in rows(to, "value")] == [b"basic", b"basic"]


def test_records_become_the_rows_that_their_messages_become() -> None:
    messages = [
        message(b"x" * number, f"k{number % 3}", app_id="a", headers={"n": number})
        for number in range(50)
    ]
    direct, from_buffer, read = builder(), builder(), builder()
    records = RecordBuffer(0, 7)
    places = []
    for position, each in enumerate(messages):
        direct.message(each, position)
        places.append(records.message(position, NOON_MS, each, True))
        assert records.append_to(places[-1], position, from_buffer)
    data = records.take()
    for position, place in enumerate(places):
        assert append_to(data, place, position, 7, read)
    assert direct.finish() == from_buffer.finish() == read.finish()


def test_an_incomplete_or_damaged_record_becomes_no_row() -> None:
    records = RecordBuffer(0, 7)
    records.message(0, NOON_MS, message(), True)
    size = records.size
    note = records.note(2, 1, NOON_MS, b"what is settled")
    to = builder()
    assert not records.append_to(note, 0, to)
    assert not records.append_to(-8, 0, to)
    assert not records.append_to(10_000, 0, to)
    data = records.take()
    damaged = data[:40] + b"!" + data[41:]
    assert not append_to(damaged, 0, 0, 7, to)
    assert not append_to(data[: size - 16], 0, 0, 7, to)
    assert not append_to(data, 0, 0, 8, to)
    assert not append_to(b"", 0, 0, 7, to)
    assert to.rows == 0
    assert append_to(data, 0, 0, 7, to)


def test_a_damaged_record_ends_the_batch_or_is_passed_over() -> None:
    to = builder()
    assert not to.damaged(5)
    assert (to.full, to.bad, to.lost) == (True, 5, 0)
    to.finish()
    assert (to.full, to.bad) == (False, -1)
    to.skip = True
    assert to.damaged(5)
    to.gone(10)
    assert (to.full, to.bad, to.lost) == (False, -1, 11)


def test_a_time_that_does_not_fit_is_null() -> None:
    to = builder("properties.timestamp")
    for position, seconds in enumerate((0, 9_223_372_036_854, 9_223_372_036_855, 2**64 - 1)):
        to.message(message(raw=b"\x00\x40" + seconds.to_bytes(8)), position)
    found = batch(to, "properties.timestamp")
    times = found["properties"].field("timestamp").cast(pa.int64()).to_pylist()
    assert times == [0, 9_223_372_036_854_000_000, None, None]


def test_a_time_of_a_record_that_does_not_fit_is_null() -> None:
    to = builder("timestamp")
    for position, millis in enumerate((0, 1, (2**63 - 1) // 1000, 2**63 // 1000 + 1, 2**63 - 1)):
        sent = message()
        sent.timestamp = millis
        to.message(sent, position)
    times = batch(to, "timestamp")["timestamp"].cast(pa.int64()).to_pylist()
    assert times == [None, 1000, (2**63 - 1) // 1000 * 1000, None, None]


AGREE = r"""
import hashlib, random
from harebell.base import impl
from harebell.base.message import Message, Properties
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.records import RecordBuffer
from harebell.wire.arrow.columns import COLUMNS, selection

from harebell.wire.v09.header_texts import count_of, headers_of, json_of
from tests.unit.kernels.agreeing import RandomProperties

rng = random.Random(20130101)
NAMES = (b"a", b"b", b"x-delivery-count", b"\xc3\xa9", b"\xff", b"", b'q"', b"$a")
TEXTS = (b"", b"text", b"gr\xc3\xbc\xc3\x9fe", b"\xff\xfe", b"x" * 300, b'a"b\\c', b"\x1f\x7f")

raw = RandomProperties(rng, NAMES, TEXTS, 5).raw

wanted = selection(",".join(COLUMNS))
digest = hashlib.sha256()
builder = BatchBuilder(wanted.columns, wanted.fields, "q", headers_of, json_of, count_of, None)
rows = 0
properties = b""
for position in range(3000):
    if position % 37 == 0:
        builder.limit(rng.randrange(1, 60), rng.randrange(9000), rng.randrange(20000))
        builder.filter(rng.choice((None, b"", b"k")), rng.random() < 0.5, 0, rng.choice((0, 900)))
        builder.marks(position + rng.randrange(-9, 9), position, {position + 3}, {position}, None)
    key = rng.choice(("", "k", "kl", "schl\u00fcssel"))
    # Mostly a message has the properties of the one before.
    properties = raw() if rng.random() < 0.4 else properties
    made = Message("e", key, Properties(properties), rng.randbytes(rng.randrange(300)))
    builder.count = rng.choice((0, 0, 3))
    if rng.random() < 0.5:
        made.timestamp = rng.randrange(1000)
        builder.message(made, position)
    else:
        records = RecordBuffer(0, 1)
        records.message(position, rng.randrange(1000), made, True)
        assert records.append_to(0, position, builder)
    if builder.full:
        made = builder.finish()
        rows += made[0]
        digest.update(repr(made).encode())
digest.update(repr(builder.finish()).encode())
print(impl.chosen(), rows, digest.hexdigest())
"""


def test_the_compiled_and_the_python_batches_agree_to_the_octet() -> None:
    rows, _ = printed_by_both(AGREE)
    assert int(rows) > 500
