"""Bodies of a pipeline: one JSON object each, or several where the file says so."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from harebell.pipeline.run import frames
from harebell.pipeline.spec.description import Body
from harebell.spark.reading.rows.bodies import json_values

SCHEMA = "id BIGINT, name STRING, inner STRUCT<x: BIGINT>, list ARRAY<BIGINT>"
ARROW = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("inner", pa.struct([("x", pa.int64())])),
        ("list", pa.list_(pa.int64())),
    ]
)
GOOD = (
    b'{"id":1}',
    b' \t\r\n{"id":2} \n',
    b"{}",
    b'{"id":3,"name":"}{ , \\" } , \\"","inner":{"x":1},"list":[1,2]}',
    b'{"inner":{"x":1},"id":4}',
    '{"name":"\u2028 caf\u00e9"}'.encode(),
    b'{"unknown":[{"deep":{}}, {"b":1}],"id":5}',
)
BAD = (
    b'{"id":14}{"id":15}',
    b'{"id":14}\n{"id":15}',
    b'{"id":14},{"id":15}',
    b'{"id":12} trailing',
    b'{"id":12}}',
    b'{"id":12}]',
    b'{"id":12},"more":1',
    b'{"id":12}],"more":[{}',
    b'{"id":12}}{"r":{',
    b'{"id":12},"r":{"id":13}',
    b'{"id":12}/* why */',
    b"{'id':12}",
    b"{id:12}",
    b'{"id":012}',
    b'{"id":12,}',
    b'{"id":NaN}',
    b'{"id":12',
    b'{"id":"twelve"}',
    b'[{"id":12}]',
    b"12",
    b"null",
    b'"text"',
    b"",
    b" ",
    b'{"name":"\xff"}',
    b'{"name":"\x01"}',
    b"\xef\xbb\xbf{}",
    b"trailing",
)


def decoded(spark: SparkSession, bodies: tuple[bytes, ...], body: Body) -> list[Any]:
    rows = [(number, bytearray(value)) for number, value in enumerate(bodies)]
    frame = spark.createDataFrame(rows, "n INT, value BINARY")
    return sorted(frames.decoded(frame, body).collect(), key=lambda row: row.n)


def test_a_body_is_one_json_object_and_all_else_is_bad(spark: SparkSession) -> None:
    found = decoded(spark, GOOD + BAD, Body("json", SCHEMA))
    assert [row.value for row in found if row[frames.BAD] is None] == [*map(bytearray, GOOD)]
    assert [row.data.id for row in found[:4]] == [1, 2, None, 3]
    assert found[3].data.name == '}{ , " } , "'
    assert (found[3].data.inner.x, found[3].data.list) == (1, [1, 2])


def test_the_bodies_of_a_pipeline_are_good_where_those_of_body_format_are(
    spark: SparkSession,
) -> None:
    bodies = GOOD + BAD
    _, bad = json_values(pa.array(bodies, pa.binary()), ARROW)
    found = decoded(spark, bodies, Body("json", SCHEMA))
    assert [row.n for row in found if row[frames.BAD] is not None] == [row for row, _ in bad]


@pytest.mark.parametrize(
    "text", [b'{"id":1}{"id":2}', b'{"id":1}\n{"id":2}\n', b' {"id":1} \r\n\r\n {\n"id":2\n}']
)
def test_several_objects_of_a_body_are_a_row_each(spark: SparkSession, text: bytes) -> None:
    found = decoded(spark, (text, b'{"id":3}'), Body("json", SCHEMA, objects="many"))
    assert [(row.n, row.data.id, row[frames.BAD]) for row in found] == [
        (0, 1, None),
        (0, 2, None),
        (1, 3, None),
    ]


def test_one_bad_object_makes_its_whole_body_bad(spark: SparkSession) -> None:
    bodies = (
        b'{"id":1}{"id":"two"}{"id":3}',
        b'{"id":1} trailing',
        b'{"id":1},{"id":2}',
        b'[{"id":1}]',
        b'{"id":1}{"id":012}',
        b'{"id":NaN}',
        b"[" * 100_000,
        b"",
        b"\xff",
    )
    found = decoded(spark, bodies, Body("json", SCHEMA, objects="many"))
    assert [(row.n, bytes(row.value)) for row in found] == list(enumerate(bodies))
    assert all(row[frames.BAD] for row in found)
