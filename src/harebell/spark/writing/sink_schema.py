"""The columns that a sink accepts, and those of them that a data frame has.

    value                      binary or string    the body; required
    exchange, routing_key      string              unless set by the options
    properties                 struct              any of the properties of class basic
    headers                    map<string,string>
    headers_raw                binary              a field table; overrides headers

Other columns of a source (`queue`, `offset`, ...) describe where a message came from and are left
out, so that a stream can be written as it was read. For the same reason an option overrides the
column for all rows, as with Kafka's sink. Any other column is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, IntegralType, MapType, StructType

from harebell.base.names import nearest
from harebell.base.row_columns import COLUMNS, FIELDS
from harebell.spark.options.values import OptionError
from harebell.spark.schema import broker_columns

OF_SOURCES = frozenset(
    {"queue", "offset", "timestamp", "redelivered", "delivery_count", "headers_json", "death"}
)
_TEXTS = ("string", "binary")
_KINDS = {
    "value": _TEXTS,
    "exchange": ("string",),
    "routing_key": ("string",),
    "headers_raw": ("binary",),
}
_OF_KAFKA = {
    "key": "select CAST(key AS STRING) AS routing_key instead",
    "topic": "say where to by the option queue or exchange, and drop it",
    "partition": "drop it, and write to a superStream if the order of keys matters",
}
_MENDS = {
    "routing_key": "cast it, CAST(... AS STRING)",
    "value": "cast it, CAST(... AS STRING), or make JSON of several columns, to_json(struct(*))",
    "headers": "make it of texts, map('name', CAST(... AS STRING))",
}
_NUMBERS = {"delivery_mode", "priority"}


class SinkSchemaError(OptionError):
    """A column that cannot be written; the text names it."""


@dataclass(frozen=True)
class MessageColumns:
    """The columns that become messages.

    Args:
        names: names of the columns.
        fields: names of the fields of `properties`.
        schema: their Arrow schema, in the types that the kernel reads.
    """

    names: tuple[str, ...]
    fields: tuple[str, ...]
    schema: pa.Schema

    @property
    def stage_notation(self) -> str:
        """The columns in the notation of class stage."""
        return ",".join(broker_columns(self.names, self.fields))

    def chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return these columns of a batch."""
        return batch.select(list(self.names))

    def fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return these columns of a batch, cast to these types.

        Raises:
            SinkSchemaError: a number does not fit.
        """
        chosen = self.chosen(batch)
        if chosen.schema.equals(self.schema):
            return chosen
        arrays = []
        for name, array in zip(self.names, chosen.columns, strict=True):
            try:
                arrays.append(_fit(array, self.schema.field(name).type))
            except pa.ArrowInvalid as error:
                raise SinkSchemaError(f"column {name} cannot be written: {error}") from None
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _fit(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(wanted) or array.type.equals(wanted):
        return array.cast(wanted)
    # Field by field: the data frame may have them in another order, or have more.
    children = [_fit(array.field(field.name), field.type) for field in wanted]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())


def message_columns(
    schema: StructType, *, ignore_unknown: bool, has_routing_key: bool, has_exchange: bool
) -> MessageColumns:
    """Return the columns of a data frame that become messages.

    Args:
        schema: of the data frame.
        ignore_unknown: leave out columns that messages do not have.
        has_routing_key: whether the options set a routing key.
        has_exchange: whether the options set an exchange.

    Raises:
        SinkSchemaError: which column is missing, unknown, or of a wrong type.
    """
    columns = {}
    for field in schema.fields:
        name = field.name
        if name in columns:
            raise SinkSchemaError(f"the data frame has two columns {name}: drop or rename one")
        if name in COLUMNS:
            columns[name] = field.dataType
        elif name not in OF_SOURCES and not ignore_unknown:
            raise SinkSchemaError(_unknown(name))
    if "value" not in columns:
        raise SinkSchemaError(
            "the data frame has no column value, which becomes the body: "
            'select("value"), or selectExpr("to_json(struct(*)) AS value") for all columns as JSON'
        )
    if not has_exchange and "exchange" not in columns:
        raise SinkSchemaError(
            'the option exchange is missing: say where to, .option("exchange", "orders") or '
            '.option("queue", "orders"), or give the data frame a column exchange'
        )
    if not has_routing_key and "routing_key" not in columns:
        raise SinkSchemaError(
            "the option routingKey is missing, and the data frame has no column routing_key: give "
            'one of them (an exchange that needs no key takes .option("routingKey", ""))'
        )
    fields: tuple[str, ...] = ()
    arrow = []
    for name, kind in columns.items():
        if name == "properties":
            fields = _fields(kind, ignore_unknown)
            arrow.append(pa.field(name, pa.struct([_arrow_field(field) for field in fields])))
        else:
            arrow.append(pa.field(name, _arrow(name, kind)))
    # An option overrides the column for all rows, so the broker does not need it.
    said = {"exchange"} if has_exchange else set()
    if has_routing_key:
        said.add("routing_key")
    kept = pa.schema([field for field in arrow if field.name not in said])
    return MessageColumns(tuple(kept.names), fields, kept)


def _arrow(name: str, kind: DataType) -> pa.DataType:
    if name == "headers":
        fits = isinstance(kind, MapType) and (
            kind.keyType.simpleString() == kind.valueType.simpleString() == "string"
        )
        if not fits:
            raise _mistyped(name, kind, "map<string,string>")
        return pa.map_(pa.string(), pa.string())
    if kind.simpleString() not in _KINDS[name]:
        raise _mistyped(name, kind, " or ".join(_KINDS[name]))
    return pa.string() if kind.simpleString() == "string" else pa.binary()


def _fields(kind: DataType, ignore_unknown: bool) -> tuple[str, ...]:
    if not isinstance(kind, StructType):
        raise _mistyped("properties", kind, "a struct")
    fields = []
    for field in kind.fields:
        if field.name not in FIELDS:
            if ignore_unknown:
                continue
            near = nearest(field.name.lower(), FIELDS)
            mend = f"did you mean {near}?" if near else f"there are {', '.join(FIELDS)}"
            raise SinkSchemaError(f"there is no property {field.name}: {mend}")
        _check_field(field.name, field.dataType)
        fields.append(field.name)
    if not fields:
        raise SinkSchemaError("column properties has no fields that could be written")
    return tuple(fields)


def _check_field(name: str, kind: DataType) -> None:
    if name in _NUMBERS:
        if not isinstance(kind, IntegralType):
            raise _mistyped(f"properties.{name}", kind, "an integer")
    elif kind.simpleString() != ("timestamp" if name == "timestamp" else "string"):
        wanted = "timestamp" if name == "timestamp" else "string"
        raise _mistyped(f"properties.{name}", kind, wanted)


def _arrow_field(name: str) -> pa.Field:
    kind: Any = pa.string()
    if name in _NUMBERS:
        kind = pa.int32()
    elif name == "timestamp":
        kind = pa.timestamp("us", tz="UTC")
    return pa.field(name, kind)


def _mistyped(name: str, kind: DataType, wanted: str) -> SinkSchemaError:
    mend = f": {_MENDS[name]}" if name in _MENDS else ""
    return SinkSchemaError(f"column {name} must be {wanted}, not {kind.simpleString()}{mend}")


def _unknown(name: str) -> str:
    text = f"a message has no place for column {name}"
    if name in _OF_KAFKA:
        return f"{text}, which is Kafka's: {_OF_KAFKA[name]}, or set ignoreUnknownColumns"
    near = nearest(name.lower(), COLUMNS)
    if near:
        return f"{text}: did you mean {near}? Drop it, or set ignoreUnknownColumns"
    return f"{text}: the columns are {', '.join(COLUMNS)}; drop it, or set ignoreUnknownColumns"
