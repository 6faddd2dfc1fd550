"""Record batches: exactly of the type that Spark compares them with, and not copied."""

from __future__ import annotations

from array import array

import pyarrow as pa
from pyspark.sql.types import MapType, StringType, StructField, StructType

from harebell.spark.reading.rows.arrow_batches import arrow_schema, record_batch
from harebell.spark.schema import MESSAGE


def offsets(*ends: int) -> bytes:
    return array("i", [0, *ends]).tobytes()


def test_times_are_in_microseconds_and_utc() -> None:
    schema = arrow_schema(MESSAGE)
    assert schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert schema.field("value").type == pa.binary()


def test_buffers_become_a_record_batch_without_a_copy() -> None:
    schema = arrow_schema(StructType([MESSAGE["value"], MESSAGE["offset"]]))
    body = b"onetwo"
    buffers = [None, offsets(3, 6), body, b"\x02", array("q", [7, 8]).tobytes()]
    batch = record_batch((7, 2, buffers), schema)
    batch.validate(full=True)
    assert batch.schema == schema
    assert batch.to_pylist() == [
        {"value": b"one", "offset": None},
        {"value": b"two", "offset": 8},
    ]
    assert batch["value"].buffers()[2].address == pa.py_buffer(body).address


def test_a_map_takes_as_many_entries_as_its_last_offset_says() -> None:
    headers = StructField("headers", MapType(StringType(), StringType()))
    schema = arrow_schema(StructType([headers]))
    buffers = [b"\x05", offsets(2, 2, 2), None, offsets(1, 2), b"ab", b"\x01", offsets(1, 1), b"x"]
    batch = record_batch((0, 3, buffers), schema)
    batch.validate(full=True)
    assert batch["headers"].to_pylist() == [[("a", "x"), ("b", None)], None, []]
