"""The columns of rows: those of a message, and those of Spark's Kafka source."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from harebell.client.url import URL
from harebell.spark.options.source_options import Options
from harebell.spark.reading.rows.arrow_batches import arrow_schema
from harebell.spark.reading.rows.row_layout import as_kafka, layout
from harebell.spark.schema import (
    KAFKA_HEADERS,
    KAFKA_MESSAGE,
    MESSAGE,
    SchemaError,
    kafka_schema,
)

OPTIONS = Options("q", URL(), columns="kafka")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_message_becomes_a_record_of_kafka() -> None:
    schema = kafka_schema(headers=True)
    columns = layout(schema, OPTIONS)
    assert columns.selection.columns == (
        *("routing_key", "value", "queue", "offset", "timestamp", "headers"),
    )
    raw = pa.RecordBatch.from_pylist(
        [
            {
                "routing_key": key,
                "value": b"body",
                "queue": "q",
                "offset": 7,
                "timestamp": NOON,
                "headers": headers,
            }
            for key, headers in [("a", [("x", "1"), ("y", None)]), ("", None), ("b", [])]
        ],
        schema=columns.raw,
    )
    found = as_kafka(raw, columns.wanted)
    found.validate(full=True)
    assert found.schema == arrow_schema(schema)
    same = {
        "value": b"body",
        "topic": "q",
        "partition": 0,
        "offset": 7,
        "timestamp": NOON,
        "timestampType": 1,
    }
    pairs = [{"key": "x", "value": b"1"}, {"key": "y", "value": None}]
    assert found.to_pylist() == [
        {"key": b"a", **same, "headers": pairs},
        {"key": b"", **same, "headers": None},
        {"key": b"b", **same, "headers": []},
    ]


def test_only_the_columns_of_the_schema_are_sent() -> None:
    columns = layout(StructType([KAFKA_MESSAGE["partition"]]), OPTIONS)
    assert columns.selection.columns == ("offset",)
    raw = pa.RecordBatch.from_pylist([{"offset": 1}, {"offset": 2}], schema=columns.raw)
    assert as_kafka(raw, columns.wanted).to_pylist() == [{"partition": 0}, {"partition": 0}]


def test_columns_of_a_message_are_unknown_with_those_of_kafka() -> None:
    with pytest.raises(SchemaError, match="a message has no column routing_key; it has key, value"):
        layout(StructType([MESSAGE["routing_key"]]), OPTIONS)
    with pytest.raises(SchemaError, match="column headers is array<struct<key:string,value:binary"):
        layout(StructType([MESSAGE["headers"]]), OPTIONS)
    assert layout(StructType([KAFKA_HEADERS]), OPTIONS).selection.columns == ("headers",)


def test_the_partition_of_a_super_stream_is_the_number_in_the_name_of_its_queue() -> None:
    options = Options("q", URL(), columns="kafka", super_stream="a-1")
    wanted = StructType([KAFKA_MESSAGE[name] for name in ("partition", "topic", "offset")])
    columns = layout(wanted, options)
    assert columns.selection.columns == ("offset", "queue")
    raw = pa.RecordBatch.from_pylist(
        [{"offset": 5, "queue": "a-1-0"}, {"offset": 6, "queue": "a-1-12"}], schema=columns.raw
    )
    assert as_kafka(raw, columns.wanted, "a-1").to_pylist() == [
        {"partition": 0, "topic": "a-1", "offset": 5},
        {"partition": 12, "topic": "a-1", "offset": 6},
    ]
    empty = as_kafka(raw.slice(0, 0), columns.wanted, "a-1")
    assert (empty.num_rows, empty.schema) == (0, columns.wanted)
