"""The columns of a message, and which of them a query wants.

Spark does not tell a Python source which columns a query uses, but it hands over the schema that
the user gave: `.schema("value binary, routing_key string")` makes the source build, keep and send
only these.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from pyspark.sql.types import (
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


class SchemaError(HarebellError, ValueError):
    """The schema asks for a column that a message does not have."""


@dataclass(frozen=True)
class Selection:
    """The wanted columns.

    Args:
        columns: their names, in their order.
        fields: names of the wanted fields of `properties`, in their order.
    """

    columns: tuple[str, ...]
    fields: tuple[str, ...]


def message_schema(*, properties: bool = True, headers: bool = True) -> StructType:
    """The columns of a message, without those that are not wanted."""
    left_out = {
        name for name, wanted in (("properties", properties), ("headers", headers)) if not wanted
    }
    return StructType([field for field in MESSAGE.fields if field.name not in left_out])


def select(schema: StructType) -> Selection:
    """What a schema asks for.

    Raises:
        SchemaError: it names a column or a type that a message does not have.
    """
    if not schema.fields:
        raise SchemaError(f"the schema has no columns; a message has {_names(MESSAGE)}")
    _check(schema, MESSAGE, "")
    fields: tuple[str, ...] = ()
    for field in schema.fields:
        if field.name == "properties":
            assert isinstance(field.dataType, StructType), "checked above"
            fields = tuple(field.dataType.names)
    return Selection(tuple(schema.names), fields)


def _check(asked: StructType, known: StructType, prefix: str) -> None:
    seen: set[str] = set()
    for field in asked.fields:
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


def _same(asked: DataType, wanted: DataType) -> bool:
    if isinstance(asked, MapType) and not asked.valueContainsNull:
        return False
    return asked.simpleString() == wanted.simpleString()


def _unknown(name: str, last: str, known: StructType) -> str:
    near = difflib.get_close_matches(last.lower(), known.names, n=1)
    if near:
        return f"a message has no column {name}: did you mean {near[0]}?"
    return f"a message has no column {name}; it has {_names(known)}"


def _mistyped(name: str, asked: DataType, wanted: DataType) -> str:
    text = f"column {name} is {wanted.simpleString()}, not {asked.simpleString()}"
    if name == "value":
        text += ": cast it in the query, CAST(value AS STRING)"
    return text


def _names(schema: StructType) -> str:
    return ", ".join(schema.names)
