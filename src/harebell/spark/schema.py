"""The columns of a message, and the columns that a query selects.

Spark does not pass the columns of a query to a Python source, but it passes the schema that the
user gave: with `.schema("value binary, routing_key string")` the source builds, stores and sends
only these. With `bodyFormat` the column `value` is text or a struct.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from harebell.base.errors import HarebellError
from harebell.base.names import nearest
from harebell.spark.options.source_options import BINARY, JSON, KAFKA, TEXT, Options
from harebell.spark.reading.rows.bodies import CORRUPT, json_problem
from harebell.spark.reading.rows.deaths import DEATH, HEADERS

_STRING = StringType()

PROPERTIES = StructType(
    [
        StructField("content_type", _STRING),
        StructField("content_encoding", _STRING),
        StructField("delivery_mode", IntegerType()),
        StructField("priority", IntegerType()),
        StructField("correlation_id", _STRING),
        StructField("reply_to", _STRING),
        StructField("expiration", _STRING),
        StructField("message_id", _STRING),
        StructField("timestamp", TimestampType()),
        StructField("type", _STRING),
        StructField("user_id", _STRING),
        StructField("app_id", _STRING),
        StructField("cluster_id", _STRING),
    ]
)

MESSAGE = StructType(
    [
        StructField("value", BinaryType()),
        StructField("routing_key", _STRING),
        StructField("exchange", _STRING),
        StructField("queue", _STRING),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("redelivered", BooleanType()),
        StructField("delivery_count", IntegerType()),
        StructField("properties", PROPERTIES),
        StructField("headers", MapType(_STRING, _STRING)),
    ]
)
"""The columns of a message by default."""

KAFKA_HEADERS = StructField(
    "headers",
    ArrayType(StructType([StructField("key", _STRING), StructField("value", BinaryType())])),
)
KAFKA_MESSAGE = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", _STRING),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
"""The columns of a message with `columns=kafka`."""
_KAFKA_ALL = StructType([*KAFKA_MESSAGE.fields, KAFKA_HEADERS])

HEADERS_JSON = StructField("headers_json", _STRING)
HEADERS_RAW = StructField("headers_raw", BinaryType())
EVERYTHING = StructType([*MESSAGE.fields, HEADERS_JSON, HEADERS_RAW, DEATH])
"""All columns that can be selected."""
_CORRUPT = StructField(CORRUPT, _STRING)


class SchemaError(HarebellError, ValueError):
    """The schema has a column that messages do not have."""


@dataclass(frozen=True)
class ColumnSelection:
    """The selected columns.

    Args:
        columns: names of the columns that the broker provides, in their order.
        fields: names of the selected fields of `properties`, in their order.
    """

    columns: tuple[str, ...]
    fields: tuple[str, ...]


def broker_columns(columns: Sequence[str], fields: Sequence[str]) -> list[str]:
    """Return columns as the broker names them, with a column per selected property."""
    names: list[str] = []
    for name in columns:
        names += [f"properties.{field}" for field in fields] if name == "properties" else [name]
    return names


def message_schema(
    *,
    properties: bool = True,
    headers: bool = True,
    json: bool = False,
    raw: bool = False,
    death: bool = False,
) -> StructType:
    """Return the columns of a message: `MESSAGE`, with columns removed or added by options."""
    left_out = {
        name for name, wanted in (("properties", properties), ("headers", headers)) if not wanted
    }
    fields = [field for field in MESSAGE.fields if field.name not in left_out]
    more = ((HEADERS_JSON, json), (HEADERS_RAW, raw), (DEATH, death))
    fields += [field for field, wanted in more if wanted]
    return StructType(fields)


def kafka_schema(*, headers: bool) -> StructType:
    """Return the columns of a message with the names of Spark's Kafka source."""
    return _KAFKA_ALL if headers else KAFKA_MESSAGE


def columns_of(options: Options) -> StructType | str:
    """Return the columns that a source with these options has.

    Raises:
        SchemaError: bodies are JSON, and no schema is given.
    """
    if options.columns == KAFKA:
        return kafka_schema(headers=options.include_headers)
    columns = message_schema(
        properties=options.include_properties,
        headers=options.include_headers,
        json=options.include_headers_json,
        raw=options.include_raw_headers,
        death=options.dead_letters_of is not None,
    )
    return with_body(columns, options)


def with_body(schema: StructType, options: Options) -> StructType | str:
    """Return the schema with `value` in its format; text where Spark parses the user's schema.

    Raises:
        SchemaError: bodies are JSON, and no schema is given.
    """
    if options.body_format == BINARY:
        return schema
    if options.body_format == JSON and options.body_schema is None:
        raise SchemaError(
            "bodyFormat=json needs to know what is in the bodies: "
            '.option("schema", "id BIGINT, total DOUBLE")'
        )
    json = options.body_format == JSON
    body = f"STRUCT<{options.body_schema}>" if json else "STRING"
    columns = [
        f"`{field.name}` {body if field.name == 'value' else field.dataType.simpleString()}"
        for field in schema.fields
    ]
    if json and options.mode == "PERMISSIVE":
        columns.append(f"`{CORRUPT}` STRING")
    return ", ".join(columns)


def select(
    schema: StructType, body_format: str = BINARY, *, kafka: bool = False
) -> ColumnSelection:
    """Return the columns that a schema selects.

    Args:
        schema: as Spark passes it.
        body_format: type of `value`.
        kafka: whether columns have the names of Spark's Kafka source.

    Raises:
        SchemaError: it has a column or a type that messages do not have.
    """
    if not schema.fields:
        raise SchemaError(f"the schema has no columns; a message has {_names(MESSAGE)}")
    if kafka:
        _check(schema, _KAFKA_ALL, "")
        return ColumnSelection(tuple(schema.names), ())
    requested = StructType([field for field in schema.fields if field.name != "value"])
    known = EVERYTHING
    if "value" not in schema.names:
        body_format = BINARY
    if body_format == BINARY:
        requested = schema
    if body_format == JSON:
        known = StructType([*EVERYTHING.fields, _CORRUPT])
    _check(requested, known, "")
    if body_format != BINARY:
        _check_body(schema, body_format)
    fields: tuple[str, ...] = ()
    for field in schema.fields:
        if field.name == "properties":
            assert isinstance(field.dataType, StructType), "checked above"
            fields = tuple(field.dataType.names)
    columns = [name for name in schema.names if name not in (CORRUPT, DEATH.name)]
    if DEATH.name in schema.names and HEADERS not in columns:
        columns.append(HEADERS)
    return ColumnSelection(tuple(columns), fields)


def _check_body(schema: StructType, body_format: str) -> None:
    if schema.names.count("value") > 1:
        raise SchemaError("the schema names column value twice")
    kind = schema["value"].dataType
    if body_format == TEXT:
        if not isinstance(kind, StringType):
            raise SchemaError(
                f"column value is string with bodyFormat=text, not {kind.simpleString()}"
            )
        return
    if not isinstance(kind, StructType) or not kind.fields:
        raise SchemaError(
            f"column value is a struct with bodyFormat=json, not {kind.simpleString()}: say which "
            "fields the bodies have, value STRUCT<id: BIGINT>"
        )
    if not schema["value"].nullable:
        raise SchemaError("column value cannot be NOT NULL with bodyFormat=json: bodies may be bad")
    problem = json_problem(to_arrow_schema(StructType([schema["value"]]), timezone="UTC")[0].type)
    if problem:
        raise SchemaError(
            f"bodyFormat=json makes no {problem.removeprefix('a ')}: read the bodies as text and "
            "use from_json(value, ...) in the query"
        )


def _check(requested: StructType, known: StructType, prefix: str) -> None:
    seen: set[str] = set()
    for field in requested.fields:
        name = prefix + field.name
        if field.name not in known.names:
            raise SchemaError(_unknown(name, field.name, known))
        if field.name in seen:
            raise SchemaError(f"the schema names column {name} twice")
        seen.add(field.name)
        wanted = known[field.name].dataType
        if isinstance(wanted, StructType) and isinstance(field.dataType, StructType):
            if not field.dataType.fields:
                raise SchemaError(f"column {name} of the schema has no fields")
            _check(field.dataType, wanted, f"{name}.")
        elif not _same(field.dataType, wanted):
            raise SchemaError(_mistyped(name, field.dataType, wanted))
        if not field.nullable and (prefix or field.name == "headers"):
            raise SchemaError(f"column {name} cannot be NOT NULL: messages may come without it")


def _same(requested: DataType, wanted: DataType) -> bool:
    # `simpleString` does not show it, and the value of a header may be null.
    if isinstance(requested, MapType) and not requested.valueContainsNull:
        return False
    return requested.simpleString() == wanted.simpleString()


def _unknown(name: str, last: str, known: StructType) -> str:
    near = nearest(last.lower(), known.names)
    if near:
        return f"a message has no column {name}: did you mean {near}?"
    return f"a message has no column {name}; it has {_names(known)}"


def _mistyped(name: str, requested: DataType, wanted: DataType) -> str:
    text = f"column {name} is {wanted.simpleString()}, not {requested.simpleString()}"
    if name == "value":
        text += ": cast it in the query, CAST(value AS STRING)"
    return text


def _names(schema: StructType) -> str:
    return ", ".join(schema.names)
