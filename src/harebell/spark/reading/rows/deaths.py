"""The column `death`: why, where and when a dead letter died last, from its header `x-death`.

It is parsed from `headers_json`, all rows of a record batch together. A message without the header,
or with another one of that name, has a null.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from harebell.spark.reading.rows.bodies import json_values

NAME = "death"
DEATH = StructField(
    NAME,
    StructType(
        [
            StructField("reason", StringType()),
            StructField("queue", StringType()),
            StructField("exchange", StringType()),
            StructField("routing_keys", ArrayType(StringType())),
            StructField("count", LongType()),
            StructField("time", TimestampType()),
        ]
    ),
)
HEADERS = "headers_json"
"""The column of the broker that it is made of."""

_HISTORY = "x-death"
_SECONDS = "$timestamp"
"""How a time is written in `headers_json`: an object with the seconds since 1970."""
_SECONDS_MAX = 2**63 // 1_000_000 - 1
_INSTANT = pa.struct([(_SECONDS, pa.int64())])
_IN_HEADER = {"routing_keys": "routing-keys"}
"""Names in the header where they differ."""


def raw_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema as the broker sends it, for a schema with the column `death`."""
    fields = [field for field in schema if field.name != NAME]
    if HEADERS not in schema.names:
        fields.append(pa.field(HEADERS, pa.string()))
    return pa.schema(fields)


def with_deaths(batch: pa.RecordBatch, death: pa.Field) -> pa.RecordBatch:
    """Append the column `death` to a batch with the column `headers_json`."""
    texts = pc.fill_null(batch.column(HEADERS), "{}").cast(pa.binary())
    names = [_IN_HEADER.get(field.name, field.name) for field in death.type]
    kinds = [_INSTANT if pa.types.is_timestamp(field.type) else field.type for field in death.type]
    event = pa.struct(list(zip(names, kinds, strict=True)))
    headers, _ = json_values(texts, pa.struct([(_HISTORY, pa.list_(event))]))
    # A null of the struct is not in its fields' own bitmaps.
    history = pc.struct_field(headers, _HISTORY)
    counts = pc.fill_null(pc.list_value_length(history), 0)
    died = pc.greater(counts, 0)
    # `list_element` fails on an empty list, so rows without a death get one with nulls.
    latest = pc.list_element(
        pc.if_else(died, history, pa.scalar([dict.fromkeys(names)], history.type)), 0
    )
    arrays = [
        _typed(pc.struct_field(latest, name), field.type)
        for name, field in zip(names, death.type, strict=True)
    ]
    column = pa.StructArray.from_arrays(arrays, fields=list(death.type), mask=pc.invert(died))
    return batch.append_column(death, column)


def _typed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return values with their type; times that Spark cannot hold become nulls."""
    if not pa.types.is_timestamp(wanted):
        return array.cast(wanted)
    seconds = pc.struct_field(array, _SECONDS)
    fits = pc.and_(pc.less(seconds, _SECONDS_MAX), pc.greater(seconds, -_SECONDS_MAX))
    return pc.if_else(fits, seconds, None).cast(pa.timestamp("s", "UTC")).cast(wanted)
