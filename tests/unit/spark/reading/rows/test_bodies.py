"""Bodies as text and JSON: every row from its own body, and bad ones found."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from harebell.spark.reading.rows import bodies
from harebell.spark.reading.rows.bodies import (
    CORRUPT,
    DROP,
    FAIL,
    PERMISSIVE,
    BodyError,
    decoded,
    raw_schema,
)

ORDER = pa.struct([("id", pa.int64()), ("name", pa.string())])


def as_json(*values: bytes, kind: pa.DataType = ORDER, mode: str = PERMISSIVE) -> list[Any]:
    schema = pa.schema([("value", kind), ("offset", pa.int64()), (CORRUPT, pa.string())])
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values, pa.binary()), pa.array(range(len(values)), pa.int64())],
        schema=raw_schema(schema, "json"),
    )
    made = decoded(batch, schema, "json", mode)
    assert made.schema == schema
    return made.to_pylist()


def values(*given: bytes, kind: pa.DataType = ORDER) -> list[Any]:
    return [row["value"] for row in as_json(*given, kind=kind)]


def as_text(*given: bytes, mode: str = PERMISSIVE) -> list[Any]:
    schema = pa.schema([("value", pa.string())])
    batch = pa.RecordBatch.from_arrays(
        [pa.array(given, pa.binary())], schema=raw_schema(schema, "text")
    )
    return [row["value"] for row in decoded(batch, schema, "text", mode).to_pylist()]


def test_json_bodies_become_structs_in_their_order() -> None:
    given = [b'{"id": %d, "name": "n%d", "more": [1, {"x": 2}]}' % (n, n) for n in range(5000)]
    assert values(*given) == [{"id": n, "name": f"n{n}"} for n in range(5000)]


def test_a_field_that_is_missing_is_null() -> None:
    assert values(b"{}", b'{"name":"a"}') == [
        {"id": None, "name": None},
        {"id": None, "name": "a"},
    ]


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b" ",
        b"{",
        b'{"id":1',
        b"[1]",
        b"3",
        b"null",
        b" null\n",
        b"no json",
        b'{"id":"one"}',
        b'{"id":1}{"id":2}',
        b'{"id":1}\n{"id":2}',
        b'{"id":1},"x":{',
        b'{"id":1},"x":2',
        b'{"id":1} ,\n"x" : {"y": 2}',
        b'null,"x":2',
        b'{"id":1}],"x":[2',
        b'{"id":1},"x":2],"y":[3',
        b'{"name":"\xff"}',
        b'{"id":99999999999999999999}',
        b"\x00",
        b'1},{"r":2',
    ],
)
def test_a_bad_body_is_null_and_kept_beside_and_its_neighbours_are_right(bad: bytes) -> None:
    rows = as_json(b'{"id":1}', bad, b'{"id":3}', bad)
    assert [row["value"] and row["value"]["id"] for row in rows] == [1, None, 3, None]
    kept = bad.decode(errors="replace")
    assert [row[CORRUPT] for row in rows] == [None, kept, None, kept]


def test_two_bodies_that_only_make_sense_together_are_both_bad() -> None:
    rows = as_json(b'{"id":', b"1}", b'{"id":7}')
    assert [row["value"] for row in rows] == [None, None, {"id": 7, "name": None}]


def test_a_body_that_knows_how_it_is_wrapped_cannot_become_two_rows() -> None:
    number = bodies._NUMBER
    forged = f'{{"id":1}},"{number}":0}}\n{{"r":{{"id":2}}'.encode()
    rows = as_json(forged, b'{"id":5}')
    assert [row["value"] for row in rows] == [None, {"id": 5, "name": None}]


def test_the_types_of_the_schema_are_made() -> None:
    kind = pa.struct(
        [
            ("f", pa.float64()),
            ("d", pa.decimal128(10, 2)),
            ("t", pa.timestamp("us", tz="UTC")),
            ("day", pa.date32()),
            ("flags", pa.list_(pa.bool_())),
            ("inner", pa.struct([("n", pa.int32())])),
        ]
    )
    body = (
        b'{"f": 1.5, "d": 12.50, "t": "2026-01-31T13:00:00+01:00", "day": "2026-01-31",'
        b' "flags": [true, null], "inner": {"n": 4}}'
    )
    assert values(body, kind=kind) == [
        {
            "f": 1.5,
            "d": Decimal("12.50"),
            "t": datetime(2026, 1, 31, 12, tzinfo=UTC),
            "day": date(2026, 1, 31),
            "flags": [True, None],
            "inner": {"n": 4},
        }
    ]
    assert values(b'{"day": "someday"}', kind=kind) == [None]


def test_bad_bodies_can_be_left_out() -> None:
    rows = as_json(b'{"id":1}', b"bad", b'{"id":3}', mode=DROP)
    assert [(row["offset"], row["value"]["id"]) for row in rows] == [(0, 1), (2, 3)]


def test_a_bad_body_can_end_the_query_and_is_named() -> None:
    with pytest.raises(BodyError, match=r"message \(offset 1\) is no JSON of the schema: .*PERMIS"):
        as_json(b'{"id":1}', b"bad", mode=FAIL)


def test_no_rows_are_no_problem() -> None:
    assert as_json() == []
    assert as_text() == []


def test_text_is_utf8() -> None:
    assert as_text(b"plain", "zwölf".encode(), b"") == ["plain", "zwölf", ""]


def test_invalid_utf8_is_replaced_left_out_or_an_error() -> None:
    given = (b"a", b"\xffb", b"c")
    assert as_text(*given) == ["a", "\ufffdb", "c"]
    assert as_text(*given, mode=DROP) == ["a", "c"]
    with pytest.raises(BodyError, match="is no UTF-8 text: it is not UTF-8: invalid start byte"):
        as_text(*given, mode=FAIL)


def test_a_query_without_bodies_has_nothing_to_decode() -> None:
    schema = pa.schema([("offset", pa.int64())])
    batch = pa.RecordBatch.from_arrays([pa.array([1])], schema=schema)
    assert decoded(batch, schema, "json", FAIL) is batch
