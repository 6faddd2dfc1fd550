"""The schema: all columns, some columns, and what a message does not have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from harebell.spark.options.source_options import parse
from harebell.spark.schema import (
    EVERYTHING,
    MESSAGE,
    PROPERTIES,
    SchemaError,
    message_schema,
    select,
    with_body,
)

TEXT = StringType()


def requested(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def never_null(name: str, kind: DataType) -> StructType:
    return StructType([StructField(name, kind, nullable=False)])


def refused(schema: StructType) -> str:
    with pytest.raises(SchemaError) as caught:
        select(schema)
    return str(caught.value)


def test_a_message_has_these_columns() -> None:
    assert [f"{field.name} {field.dataType.simpleString()}" for field in MESSAGE.fields] == [
        "value binary",
        "routing_key string",
        "exchange string",
        "queue string",
        "offset bigint",
        "timestamp timestamp",
        "redelivered boolean",
        "delivery_count int",
        "properties struct<content_type:string,content_encoding:string,delivery_mode:int,"
        "priority:int,correlation_id:string,reply_to:string,expiration:string,message_id:string,"
        "timestamp:timestamp,type:string,user_id:string,app_id:string,cluster_id:string>",
        "headers map<string,string>",
    ]


def test_every_column_has_its_row_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "spark.md").read_text()
    section = page.partition("## Columns")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| (.+) \|$", section, re.M)
    assert [(name, kind) for name, kind, _ in rows] == [
        (field.name, field.dataType.simpleString().partition("<content")[0])
        for field in EVERYTHING.fields
    ]
    properties = next(text for name, _, text in rows if name == "properties")
    assert re.findall(r"`(\w+)`", properties) == PROPERTIES.names


def test_headers_and_properties_can_be_left_out() -> None:
    names = message_schema(properties=False, headers=False).names
    assert names == [n for n in MESSAGE.names if n not in ("properties", "headers")]


def test_the_order_of_the_user_is_kept() -> None:
    selection = select(requested(offset=LongType(), value=BinaryType()))
    assert selection.columns == ("offset", "value")
    assert selection.fields == ()


def test_some_properties_can_be_chosen() -> None:
    selection = select(requested(properties=requested(type=TEXT, priority=IntegerType())))
    assert selection.columns == ("properties",)
    assert selection.fields == ("type", "priority")


def test_an_unknown_column_is_answered_with_the_nearest_one() -> None:
    assert refused(requested(routingKey=TEXT)) == (
        "a message has no column routingKey: did you mean routing_key?"
    )


def test_an_unknown_property_is_answered_with_the_nearest_one() -> None:
    assert refused(requested(properties=requested(mesage_id=TEXT))) == (
        "a message has no column properties.mesage_id: did you mean message_id?"
    )


def test_a_column_like_no_other_is_answered_with_all_of_them() -> None:
    assert "it has value, routing_key, exchange" in refused(requested(zzz=TEXT))


def test_a_body_as_text_is_answered_with_the_cast() -> None:
    assert refused(requested(value=TEXT)) == (
        "column value is binary, not string: cast it in the query, CAST(value AS STRING)"
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("offset", IntegerType()),
        ("headers", TEXT),
        ("headers", MapType(TEXT, LongType())),
        ("headers", MapType(TEXT, TEXT, valueContainsNull=False)),
        ("properties", TEXT),
    ],
)
def test_a_wrong_type_is_named(name: str, kind: DataType) -> None:
    assert f"column {name} is " in refused(requested(**{name: kind}))


def test_a_column_named_twice_is_refused() -> None:
    twice = StructType([StructField("offset", LongType()), StructField("offset", LongType())])
    assert refused(twice) == "the schema names column offset twice"


def test_a_column_that_may_be_absent_cannot_be_not_null() -> None:
    headers = never_null("headers", MapType(TEXT, TEXT))
    assert "column headers cannot be NOT NULL" in refused(headers)
    properties = requested(properties=never_null("type", TEXT))
    assert "column properties.type cannot be NOT NULL" in refused(properties)


def test_a_column_that_is_never_absent_can_be_not_null() -> None:
    assert select(never_null("value", BinaryType())).columns == ("value",)


def test_a_schema_without_columns_is_refused() -> None:
    with pytest.raises(SchemaError, match="has no columns"):
        select(StructType([]))
    with pytest.raises(SchemaError, match="column properties of the schema has no fields"):
        select(requested(properties=StructType([])))


JSON = {"queue": "q", "bodyFormat": "json"}


def test_three_more_columns_can_be_asked_for() -> None:
    assert message_schema(json=True, raw=True, death=True) == EVERYTHING
    assert select(requested(headers_json=TEXT, headers_raw=BinaryType())).columns == (
        "headers_json",
        "headers_raw",
    )


def test_text_bodies_are_strings() -> None:
    options = parse({"queue": "q", "bodyFormat": "text"}, {})
    assert str(with_body(requested(value=BinaryType(), offset=LongType()), options)) == (
        "`value` STRING, `offset` bigint"
    )
    assert select(requested(value=TEXT), "text").columns == ("value",)
    with pytest.raises(SchemaError, match="value is string with bodyFormat=text, not binary"):
        select(requested(value=BinaryType()), "text")


def test_json_bodies_are_structs_and_bad_ones_are_kept() -> None:
    options = parse(JSON | {"schema": "id BIGINT, total DOUBLE"}, {})
    assert str(with_body(requested(value=BinaryType()), options)) == (
        "`value` STRUCT<id BIGINT, total DOUBLE>, `_corrupt_record` STRING"
    )
    strict = parse(JSON | {"schema": "id BIGINT", "mode": "failfast"}, {})
    assert str(with_body(requested(value=BinaryType()), strict)) == "`value` STRUCT<id BIGINT>"
    body = requested(value=requested(id=LongType()), _corrupt_record=TEXT, offset=LongType())
    assert select(body, "json").columns == ("value", "offset")


def test_a_schema_has_to_be_given_for_json() -> None:
    with pytest.raises(SchemaError, match="bodyFormat=json needs to know what is in the bodies"):
        with_body(MESSAGE, parse(JSON, {}))
    with pytest.raises(SchemaError, match="value is a struct with bodyFormat=json, not binary"):
        select(MESSAGE, "json")
    with pytest.raises(SchemaError, match="no column _corrupt_record"):
        select(requested(_corrupt_record=TEXT))


def test_json_makes_no_maps() -> None:
    body = requested(value=requested(tags=MapType(TEXT, TEXT)))
    with pytest.raises(SchemaError, match=r"bodyFormat=json makes no map<string, string>.*from_js"):
        select(body, "json")


def test_json_bodies_may_be_null() -> None:
    with pytest.raises(SchemaError, match="value cannot be NOT NULL with bodyFormat=json"):
        select(never_null("value", requested(id=LongType())), "json")


def test_a_query_without_bodies_needs_no_format() -> None:
    assert select(requested(offset=LongType()), "json").columns == ("offset",)
