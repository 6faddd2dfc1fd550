"""Which columns of a data frame become messages, and every wrong one with its sentence."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from harebell.spark.schema import MESSAGE
from harebell.spark.writing.sink_schema import MessageColumns, SinkSchemaError, message_columns

SIMPLE: dict[str, DataType] = {
    "STRING": StringType(),
    "BINARY": BinaryType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "TIMESTAMP": TimestampType(),
}


def struct_of(fields: str, between: str) -> StructType:
    """`value STRING, properties STRUCT<type: STRING>`, read without a JVM."""
    found = StructType()
    for field in re.findall(rf"(\w+){between}(\w+(?:<[^>]*>)?)", fields):
        found.add(field[0], type_of(field[1]))
    return found


def type_of(text: str) -> DataType:
    if text.startswith("STRUCT<"):
        return struct_of(text[7:-1], ": ")
    if text.startswith("MAP<"):
        key, value = text[4:-1].split(", ")
        return MapType(SIMPLE[key], SIMPLE[value])
    return SIMPLE[text]


def columns(ddl: str, **more: bool) -> MessageColumns:
    schema = struct_of(ddl, " ")
    return message_columns(
        schema, **{"ignore_unknown": False, "has_routing_key": True, "has_exchange": True, **more}
    )


def test_a_data_frame_as_the_source_reads_it_can_be_written() -> None:
    found = message_columns(
        MESSAGE, ignore_unknown=False, has_routing_key=False, has_exchange=False
    )
    assert found.names == ("value", "routing_key", "exchange", "properties", "headers")
    assert found.stage_notation.startswith(
        "value,routing_key,exchange,properties.content_type,properties."
    )
    assert found.stage_notation.endswith("properties.cluster_id,headers")


def test_a_batch_as_spark_hands_it_over_is_taken_as_it_is() -> None:
    schema = struct_of("value BINARY, routing_key STRING", " ")
    found = columns("value BINARY, routing_key STRING", has_routing_key=False)
    arrow = to_arrow_schema(schema, timezone="UTC")
    batch = pa.RecordBatch.from_pydict({"value": [b"a"], "routing_key": ["k"]}, schema=arrow)
    fitted = found.fitted(batch)
    assert fitted.schema.names == ["value", "routing_key"]
    assert fitted.column(0).buffers()[2].address == batch.column(0).buffers()[2].address


def test_options_count_for_all_rows() -> None:
    text = "value STRING, routing_key STRING, exchange STRING"
    assert columns(text, has_routing_key=False).names == ("value", "routing_key")
    assert columns(text, has_exchange=False).names == ("value", "exchange")
    assert columns(text).names == ("value",)


def test_columns_that_say_where_a_message_came_from_are_left_out() -> None:
    found = columns("offset BIGINT, value STRING, queue STRING")
    batch = pa.RecordBatch.from_pydict({"offset": [1], "value": ["a"], "queue": ["q"]})
    assert found.fitted(batch).schema.names == ["value"]


def test_other_integers_are_fitted_and_those_that_do_not_fit_are_refused() -> None:
    found = columns("value STRING, properties STRUCT<priority: BIGINT, type: STRING>")
    properties = pa.array([{"priority": 4, "type": "t"}, None])
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b"]), properties], ["value", "properties"])
    fitted = found.fitted(batch)
    assert fitted.schema.field("properties").type.field("priority").type == pa.int32()
    assert fitted.column("properties").to_pylist() == [{"priority": 4, "type": "t"}, None]
    large = pa.array([{"priority": 2**40, "type": "t"}] * 2)
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b"]), large], ["value", "properties"])
    with pytest.raises(SinkSchemaError, match="column properties cannot be written: "):
        found.fitted(batch)


def test_large_strings_of_spark_are_fitted() -> None:
    found = columns("value STRING")
    batch = pa.RecordBatch.from_arrays([pa.array(["a"], pa.large_string())], ["value"])
    assert found.fitted(batch).schema.field("value").type == pa.string()


@pytest.mark.parametrize(
    ("ddl", "sentence"),
    [
        ("routing_key STRING", "the data frame has no column value, which becomes the body: "),
        ("value BIGINT", "column value must be string or binary, not bigint: cast it, CAST("),
        ("value STRING, routing_key INT", "column routing_key must be string, not int"),
        ("value STRING, exchange BINARY", "column exchange must be string, not binary"),
        ("value STRING, headers_raw STRING", "column headers_raw must be binary, not string"),
        ("value STRING, headers MAP<STRING, INT>", "column headers must be map<string,string>, no"),
        ("value STRING, headers STRING", "column headers must be map<string,string>, not string"),
        ("value STRING, properties STRING", "column properties must be a struct, not string"),
        (
            "value STRING, properties STRUCT<prioritee: INT>",
            "there is no property prioritee: did you mean priority?",
        ),
        (
            "value STRING, properties STRUCT<priority: STRING>",
            "column properties.priority must be an integer, not string",
        ),
        (
            "value STRING, properties STRUCT<timestamp: BIGINT>",
            "column properties.timestamp must be timestamp, not bigint",
        ),
        (
            "value STRING, properties STRUCT<type: INT>",
            "column properties.type must be string, not int",
        ),
        ("value STRING, valeu INT", "a message has no place for column valeu: did you mean value?"),
        ("value STRING, zzz INT", "a message has no place for column zzz: the columns are value, "),
    ],
)
def test_a_wrong_column_is_named_with_its_mend(ddl: str, sentence: str) -> None:
    with pytest.raises(SinkSchemaError) as caught:
        columns(ddl)
    assert str(caught.value).startswith(sentence)


def test_a_column_may_not_be_there_twice() -> None:
    schema = struct_of("value STRING, value STRING", " ")
    with pytest.raises(SinkSchemaError, match="two columns value: drop or rename one"):
        message_columns(schema, ignore_unknown=True, has_routing_key=True, has_exchange=True)


def test_unknown_columns_are_left_out_when_they_are_to_be() -> None:
    found = columns(
        "value STRING, zzz INT, properties STRUCT<nothing: INT, type: STRING>", ignore_unknown=True
    )
    assert found.stage_notation == "value,properties.type"
    with pytest.raises(SinkSchemaError, match="properties has no fields that could be written"):
        columns("value STRING, properties STRUCT<nothing: INT>", ignore_unknown=True)


def test_where_to_has_to_be_said_by_an_option_or_a_column() -> None:
    with pytest.raises(SinkSchemaError, match="the option exchange is missing: say where to"):
        columns("value STRING", has_exchange=False)
    with pytest.raises(SinkSchemaError, match="the option routingKey is missing, and the data fra"):
        columns("value STRING", has_routing_key=False)
    assert columns(
        "value STRING, exchange STRING, routing_key STRING",
        has_exchange=False,
        has_routing_key=False,
    )
