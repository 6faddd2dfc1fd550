"""Filters of Spark as conditions of the broker: what they imply, and what is left to Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import datasource as ds

from harebell.model.filter.condition import compile_filter
from harebell.spark.reading.positions.broker_conditions import joined
from harebell.spark.reading.positions.pushed_conditions import condition_of

ID, PRIORITY, AGAIN = ("properties", "message_id"), ("properties", "priority"), ("redelivered",)


@pytest.mark.parametrize(
    ("pushed", "condition"),
    [
        (ds.EqualTo(ID, "it's"), "properties.message_id = 'it''s'"),
        (ds.EqualNullSafe(("exchange",), ""), "exchange = ''"),
        (ds.In(ID, ("a", None, "b")), "properties.message_id IN ('a', 'b')"),
        (ds.StringStartsWith(ID, "a_%"), "properties.message_id LIKE 'a\\_\\%%'"),
        (ds.GreaterThan(PRIORITY, 3), "properties.priority > 3"),
        (ds.In(PRIORITY, (1, 2)), "properties.priority IN (1, 2)"),
        (ds.EqualTo(AGAIN, True), "redelivered = TRUE"),
    ],
)
def test_a_filter_implies_a_condition(pushed: ds.Filter, condition: str) -> None:
    assert condition_of(pushed) == condition
    compile_filter(condition)


@pytest.mark.parametrize(
    "pushed",
    [
        ds.EqualTo(ID, "base64:AAAA"),
        ds.StringStartsWith(ID, "base"),
        ds.In(ID, ("a", "base64:AAAA")),
        ds.EqualTo(ID, None),
        ds.EqualNullSafe(ID, None),
        ds.GreaterThan(ID, "a"),
        ds.EqualTo(PRIORITY, True),
        ds.In(PRIORITY, (None,)),
        ds.IsNull(ID),
        ds.Not(ds.EqualTo(ID, "a")),
        ds.EqualTo(("properties", "timestamp"), "a"),
        ds.EqualTo(("headers",), "a"),
        ds.EqualTo(("value",), b"a"),
        ds.EqualTo(ID, "a" * 256),
    ],
)
def test_a_filter_that_the_broker_could_see_differently_is_left_to_spark(pushed: ds.Filter) -> None:
    assert condition_of(pushed) is None


def test_conditions_that_make_a_filter_too_long_are_left_to_spark() -> None:
    assert joined(None, []) is None
    assert joined("redelivered OR offset = 1", []) == "(redelivered OR offset = 1)"
    many = [f"exchange = '{number:0200}'" for number in range(200)]
    whole = joined("redelivered", many)
    assert whole is not None
    assert whole.startswith("(redelivered) AND exchange = '000")
    assert len(whole) > 10_000
    compile_filter(whole)
