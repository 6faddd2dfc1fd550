"""Which columns are written by Spark before people see them; that they are is in tests/spark."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from harebell.pipeline.sql.shown_rows import has_times

TIME, TEXT = TimestampType(), StringType()


@pytest.mark.parametrize(
    "kind",
    [
        TIME,
        TimestampNTZType(),
        DateType(),
        ArrayType(ArrayType(TIME)),
        MapType(TEXT, TIME),
        MapType(TIME, TEXT),
        StructType([StructField("a", TEXT), StructField("b", ArrayType(DateType()))]),
    ],
    ids=DataType.simpleString,
)
def test_times_are_found_wherever_they_are(kind: DataType) -> None:
    assert has_times(kind)


@pytest.mark.parametrize(
    "kind",
    [TEXT, ArrayType(IntegerType()), MapType(TEXT, TEXT), StructType([StructField("a", TEXT)])],
    ids=DataType.simpleString,
)
def test_rows_without_times_stay_as_they_are(kind: DataType) -> None:
    assert not has_times(kind)
