"""Translate filters of Spark into conditions of the broker's filter language."""

from __future__ import annotations

from typing import Any

from pyspark.sql import datasource as ds

from harebell.spark.reading.positions.broker_conditions import BEGINS, IN, compared

_SYMBOLS: tuple[tuple[type, str], ...] = (
    (ds.EqualTo, "="),
    (ds.EqualNullSafe, "="),
    (ds.GreaterThan, ">"),
    (ds.GreaterThanOrEqual, ">="),
    (ds.LessThan, "<"),
    (ds.LessThanOrEqual, "<="),
    (ds.StringStartsWith, BEGINS),
    (ds.In, IN),
)


def condition_of(one: ds.Filter) -> str | None:
    """Return the condition that a filter implies; None if it has none."""
    column: tuple[str, ...] = getattr(one, "attribute", ())
    value: Any = getattr(one, "value", None)
    for of, symbol in _SYMBOLS:
        if isinstance(one, of):
            return compared(column, symbol, value if symbol == IN else (value,))
    return None
