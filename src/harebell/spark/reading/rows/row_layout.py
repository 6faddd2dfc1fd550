"""The columns of rows on their way: what Spark expects, and what the broker sends.

With `columns=kafka` rows have the columns of Spark's Kafka source:

    key             binary          the routing key
    value           binary
    topic           string          the queue, or the super stream
    partition       int             0, or the number of the partition of a super stream
    offset          bigint
    timestamp       timestamp       when the broker received the message
    timestampType   int             1: the time of the log
    headers         array<struct<key: string, value: binary>>
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from harebell.spark.options.source_options import KAFKA, Options
from harebell.spark.reading.rows import deaths
from harebell.spark.reading.rows.arrow_batches import arrow_schema
from harebell.spark.reading.rows.bodies import raw_schema
from harebell.spark.reading.rows.key_shares import column_of, field_of
from harebell.spark.schema import MESSAGE, PROPERTIES, ColumnSelection, SchemaError, select

_SOURCES = {
    "key": "routing_key",
    "value": "value",
    "topic": "queue",
    "offset": "offset",
    "timestamp": "timestamp",
    "headers": "headers",
}
"""Columns of a message, by their names in Kafka's source."""
_CONSTANTS = {"partition": 0, "timestampType": 1}
_PARTITION = "partition"


class RowLayout(NamedTuple):
    """The columns of a query.

    Args:
        selection: the columns that the broker provides.
        wanted: the schema that Spark expects.
        raw: the schema as the broker sends it.
    """

    selection: ColumnSelection
    wanted: pa.Schema
    raw: pa.Schema


def layout(schema: StructType, options: Options) -> RowLayout:
    """Return the layout of rows with this schema.

    Raises:
        SchemaError: it has a column or a type that messages do not have.
    """
    layout = _layout(schema, options)
    if options.ordering_key is None:
        return layout
    return _with_key(layout, options.ordering_key)


def _with_key(row_layout: RowLayout, key: str) -> RowLayout:
    """Return a layout with the column in which the ordering key is, also if Spark did not ask."""
    selection, wanted, raw = row_layout
    column, field = column_of(key), field_of(key)
    if column in selection.columns:
        if field is None or field in selection.fields:
            return row_layout
        raise SchemaError(
            f"the option orderingKey is {key}, which column properties of the schema leaves out: "
            f"add {field} to it"
        )
    kind = MESSAGE[column]
    fields = selection.fields
    if field is not None:
        fields = (field,)
        kind = StructField(column, StructType([PROPERTIES[field]]))
    more = arrow_schema(StructType([kind])).field(column)
    return RowLayout(
        ColumnSelection((*selection.columns, column), fields), wanted, raw.append(more)
    )


def _layout(schema: StructType, options: Options) -> RowLayout:
    selection = select(schema, options.body_format, kafka=options.columns == KAFKA)
    wanted = arrow_schema(schema)
    if options.columns != KAFKA:
        raw = raw_schema(wanted, options.body_format)
        if deaths.NAME in schema.names:
            raw = deaths.raw_schema(raw)
        return RowLayout(selection, wanted, raw)
    names = [_SOURCES[name] for name in schema.names if name in _SOURCES]
    if options.super_stream is not None and _PARTITION in schema.names:
        names = [*(name for name in names if name != "queue"), "queue"]
    # A batch of constants alone would have no length.
    names = names or ["offset"]
    raw = arrow_schema(StructType([MESSAGE[name] for name in names]))
    return RowLayout(ColumnSelection(tuple(names), ()), wanted, raw)


def as_kafka(
    batch: pa.RecordBatch, wanted: pa.Schema, super_stream: str | None = None
) -> pa.RecordBatch:
    """Return the rows of a batch of the broker with Kafka's columns.

    Args:
        batch: the rows.
        wanted: the columns.
        super_stream: the super stream whose partitions the rows are from; None for other queues.
    """
    arrays = []
    for field in wanted:
        if super_stream is not None and field.name == _PARTITION:
            numbers = pc.utf8_slice_codeunits(batch.column("queue"), len(super_stream) + 1)
            arrays.append(numbers.cast(field.type))
            continue
        if super_stream is not None and field.name == "topic":
            arrays.append(pa.repeat(pa.scalar(super_stream, field.type), batch.num_rows))
            continue
        if field.name in _CONSTANTS:
            arrays.append(pa.repeat(pa.scalar(_CONSTANTS[field.name], field.type), batch.num_rows))
            continue
        array = batch.column(_SOURCES[field.name])
        arrays.append(
            _headers(array, field.type) if field.name == "headers" else array.cast(field.type)
        )
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _headers(array: pa.MapArray, wanted: pa.ListType) -> pa.Array:
    pairs = wanted.value_type
    keys = array.keys.cast(pairs.field("key").type)
    items = array.items.cast(pairs.field("value").type)
    entries = pa.StructArray.from_arrays([keys, items], fields=list(pairs))
    return pa.ListArray.from_arrays(array.offsets, entries, type=wanted, mask=array.is_null())
