"""Check the names in the SQL of steps and sinks: which columns they have, and of which types.

The columns of a source are those of a message, and those of its bodies; every step makes others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.errors import HarebellError
from harebell.base.names import did_you_mean
from harebell.pipeline.errors import Complaints, PipelineError
from harebell.pipeline.sinks.evolving import check_names, check_partitions
from harebell.pipeline.sinks.exchange import KEY, PARTS, VALUE
from harebell.pipeline.spec import statements
from harebell.pipeline.spec.description import Sink, Source, Watermark
from harebell.pipeline.spec.relations import OPEN, Relation, fields_of, relation_of, shown
from harebell.pipeline.spec.resolving import Mistake, Resolver, unknown_functions
from harebell.pipeline.spec.yaml_nodes import Node
from harebell.spark.options.source_options import parse

if TYPE_CHECKING:
    from pyspark.sql.types import DataType
    from sqlglot import exp

_TABLES = {"delta": "Delta table", "iceberg": "Iceberg table", "parquet": "Parquet files"}


class ColumnCheck:
    """Check the names of one pipeline, from its sources to its sinks.

    Args:
        complaints: gathers the mistakes.
    """

    def __init__(self, complaints: Complaints) -> None:
        self._complaints = complaints
        self._views: dict[str, Relation] = {}
        self._functions = True

    def add_source(self, source: Source, node: Node) -> None:
        """Add the view of a source."""
        self._views[source.name.lower()] = columns = _columns_of(source)
        if node.is_mapping:
            self._watermark(source.watermark, node.value.get("watermark"), columns)

    def add_query(self, name: str, query: statements.ParsedQuery | None, node: Node) -> None:
        """Add the view of a step with SQL; its query is None if it could not be parsed."""
        columns = OPEN
        if query is not None:
            resolver = Resolver(self._views)
            if query.tree is not None:
                columns = resolver.columns_of(query.tree)
            self._report([*resolver.mistakes, *self._unknown(query.called)], node)
        self._views[name.lower()] = columns

    def add_function(self, name: str) -> None:
        """Add the view of a step in Python, which may also register functions."""
        self._views[name.lower()] = OPEN
        # From here on an unknown function may be one that the step has registered.
        self._functions = False

    def check_watermark(self, name: str, watermark: Watermark | None, node: Node | None) -> None:
        """Check the watermark of a step."""
        self._watermark(watermark, node, self._views.get(name.lower(), OPEN))

    def check_sink(self, sink: Sink, keys: Mapping[str, Node]) -> None:
        """Check what a sink says about the columns of its view."""
        relation = self._views.get(sink.source.lower(), OPEN)
        if "where" in keys:
            self._expression(keys["where"], relation, is_condition=True)
        if sink.kind == "exchange":
            if "routingKey" in keys:
                self._expression(keys["routingKey"], relation, is_condition=False)
            self._messages(sink, keys, relation)
        elif sink.kind in _TABLES:
            self._table(sink, keys, relation)

    def _expression(self, node: Node, relation: Relation, *, is_condition: bool) -> None:
        try:
            parsed = statements.condition(str(node.value))
        except statements.StatementError:
            # It was reported where it was read.
            return
        resolver = Resolver({})
        if is_condition:
            resolver.condition(parsed.tree, relation)
        else:
            resolver.expression(parsed.tree, relation)
        self._report([*resolver.mistakes, *self._unknown(parsed.called)], node)

    def _unknown(self, called: Iterable[tuple[str, int]]) -> list[Mistake]:
        return unknown_functions(called) if self._functions else []

    def _report(self, mistakes: Iterable[Mistake], node: Node) -> None:
        for each in mistakes:
            self._complaints.add(node.text_line + each.line - 1, each.text)

    def _watermark(
        self, watermark: Watermark | None, node: Node | None, relation: Relation
    ) -> None:
        if watermark is None or node is None:
            return
        from sqlglot import exp

        types = exp.DataType.Type
        times = (types.TIMESTAMP, types.TIMESTAMPTZ, types.TIMESTAMPLTZ, types.TIMESTAMPNTZ)
        column = watermark.column.partition(".")[0].strip("`")
        line = node.value["column"].line
        if not relation.may_have(column):
            known = did_you_mean(column, relation.names)
            self._complaints.add(line, f"there is no column {column!r} for the watermark: {known}")
            return
        kind = relation.type_of(column)
        if kind is not None and not kind.is_type(*times, types.STRUCT):
            self._complaints.add(
                line, f"the column {column} of the watermark is {shown(kind)}, and no TIMESTAMP"
            )

    def _table(self, sink: Sink, keys: Mapping[str, Node], relation: Relation) -> None:
        """Check the columns of a table, and those that it is partitioned by."""
        if relation.is_open or relation.generated:
            return
        what = f"{_TABLES[sink.kind]} {sink.target}"
        line = min(node.line for node in keys.values())
        if sink.kind != "parquet":
            self._check(line, lambda: check_names(relation.names, what))
        for column in sink.partition_by:
            line = keys["partitionBy"].line
            if not relation.may_have(column):
                self._check(
                    line, lambda column=column: check_partitions([column], relation.names, what)
                )
                continue
            kind = relation.type_of(column)
            if kind is not None and _is_nested(kind):
                self._complaints.add(
                    line,
                    f"partitionBy names the column {column}, which is {shown(kind)}: a "
                    "partition has one simple value",
                )
        if sink.partition_by and {each.lower() for each in sink.partition_by} >= {
            each.lower() for each in relation.names
        }:
            self._complaints.add(
                keys["partitionBy"].line,
                "partitionBy names all columns, and nothing would be left for the files",
            )

    def _messages(self, sink: Sink, keys: Mapping[str, Node], relation: Relation) -> None:
        """Check the types of columns that become parts of messages."""
        from pyspark.sql.types import BinaryType, StringType, StructField, StructType

        from harebell.spark.writing.sink_schema import message_columns

        line = min(node.line for node in keys.values())
        body = relation.type_of(VALUE)
        if body is not None and not _is_body(body):
            self._complaints.add(
                line,
                f"the column value is {shown(body)}, and a body is text or bytes: make it "
                "to_json(...) or CAST(... AS STRING)",
            )
        # One column at a time: the sink's own check stops at the first that is wrong.
        for name in PARTS:
            kind = relation.type_of(name)
            if name == VALUE or (name == KEY and "routingKey" in keys) or kind is None:
                continue
            converted = _converted(kind)
            if converted is None:
                continue
            schema = StructType([StructField(VALUE, BinaryType()), StructField(name, converted)])
            if name != KEY:
                schema.add(KEY, StringType())
            self._check(
                line,
                lambda schema=schema: message_columns(
                    schema,
                    ignore_unknown=sink.options.get("ignoreUnknownColumns") == "true",
                    has_routing_key=False,
                    has_exchange=True,
                ),
            )

    def _check(self, line: int, check: Any) -> None:
        """Call a check of a running pipeline, and report what it raises."""
        try:
            check()
        except (PipelineError, HarebellError) as error:
            self._complaints.add(line, str(error))


def _columns_of(source: Source) -> Relation:
    from harebell.spark.schema import columns_of

    try:
        schema = columns_of(parse(source.options))
    except HarebellError:
        # Its options were reported; without them nothing is known of its columns.
        return OPEN
    ddl = schema if isinstance(schema, str) else ", ".join(_written(schema))
    body = source.body
    if body.format == "text":
        ddl += ", data STRING"
    elif body.format == "json":
        ddl += f", data STRUCT<{body.schema}>"
    return relation_of(ddl)


def _written(schema: Any) -> Iterator[str]:
    for each in schema.fields:
        yield f"`{each.name}` {each.dataType.simpleString()}"


def _is_nested(kind: exp.DataType) -> bool:
    from sqlglot import exp

    types = exp.DataType.Type
    return bool(kind.is_type(types.STRUCT, types.ARRAY, types.MAP, types.VARIANT))


def _is_body(kind: exp.DataType) -> bool:
    from sqlglot import exp

    types = exp.DataType.Type
    return bool(kind.is_type(*exp.DataType.TEXT_TYPES, types.BINARY, types.VARBINARY))


def _converted(kind: exp.DataType) -> DataType | None:
    """Return a type as one of PySpark; None if it is not among those of messages."""
    from pyspark.sql import types
    from sqlglot import exp

    names = exp.DataType.Type
    simple: dict[Any, type[DataType]] = {
        names.TEXT: types.StringType,
        names.BINARY: types.BinaryType,
        names.INT: types.IntegerType,
        names.BIGINT: types.LongType,
        names.SMALLINT: types.ShortType,
        names.TINYINT: types.ByteType,
        names.DOUBLE: types.DoubleType,
        names.BOOLEAN: types.BooleanType,
        names.DATE: types.DateType,
        names.TIMESTAMP: types.TimestampType,
        names.TIMESTAMPTZ: types.TimestampType,
    }
    if kind.this in simple:
        return simple[kind.this]()
    if kind.is_type(names.MAP):
        key, value = (_converted(each) for each in kind.expressions)
        return None if key is None or value is None else types.MapType(key, value)
    if kind.is_type(names.STRUCT):
        fields = []
        for name, each in fields_of(kind):
            converted = None if each is None else _converted(each)
            if converted is None:
                return None
            fields.append(types.StructField(name, converted))
        return types.StructType(fields)
    return None
