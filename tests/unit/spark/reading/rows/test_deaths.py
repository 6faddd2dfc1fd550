"""The column `death` is made of the header `x-death`, whatever is in it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from harebell.spark.options.source_options import parse
from harebell.spark.reading.rows.arrow_batches import arrow_schema
from harebell.spark.reading.rows.deaths import DEATH, with_deaths
from harebell.spark.reading.rows.row_layout import layout
from harebell.spark.schema import MESSAGE

EVENT = {
    "count": 2,
    "reason": "rejected",
    "queue": "q",
    "time": {"$timestamp": 1357016400},
    "exchange": "e",
    "routing-keys": ["a", "b"],
}


def deaths(*headers: str | None) -> list[Any]:
    field = arrow_schema(StructType([DEATH])).field("death")
    batch = pa.record_batch({"headers_json": pa.array(headers, pa.string())})
    return with_deaths(batch, field).column("death").to_pylist()  # type: ignore[no-any-return]


def test_the_latest_death_counts() -> None:
    earlier = EVENT | {"reason": "expired"}
    assert deaths(json.dumps({"n": 1, "x-death": [EVENT, earlier]})) == [
        {
            "reason": "rejected",
            "queue": "q",
            "exchange": "e",
            "routing_keys": ["a", "b"],
            "count": 2,
            "time": datetime(2013, 1, 1, 5, tzinfo=UTC),
        }
    ]


@pytest.mark.parametrize(
    "headers",
    [
        *(None, "{}", '{"x-death":"text"}', '{"x-death":[]}', '{"x-death":[1]}'),
        *('{"x-death":[{"count":"many"}]}', '{"x-death":{"count":1}}', '{"a":{"x-death":[]}}'),
    ],
)
def test_a_message_that_did_not_die_has_none(headers: str | None) -> None:
    good = json.dumps({"x-death": [EVENT]})
    found = deaths(good, headers, good)
    assert [row is None for row in found] == [False, True, False]


@pytest.mark.parametrize("seconds", [2**63 - 1, -(2**63), None])
def test_a_time_that_spark_cannot_hold_is_null(seconds: int | None) -> None:
    (found,) = deaths(json.dumps({"x-death": [EVENT | {"time": {"$timestamp": seconds}}]}))
    assert (found["time"], found["count"]) == (None, 2)


def test_no_rows_have_no_deaths() -> None:
    assert deaths() == []


def test_the_broker_sends_headers_for_it() -> None:
    options = parse({"deadLettersOf": "q"}, {})
    columns = layout(StructType([MESSAGE["value"], DEATH]), options)
    assert columns.raw.names == ["value", "headers_json"] == list(columns.selection.columns)
