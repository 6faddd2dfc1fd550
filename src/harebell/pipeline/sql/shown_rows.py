"""Return the first rows of a data frame as Python values, with times as texts.

Python has no time after the year 9999, and Spark has: a publisher that takes milliseconds for
the seconds of AMQP's `timestamp` is in the year 50,000. Spark also converts times to Python in the
zone of the process, and not of the session. So Spark formats them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.run.failures import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def first_rows(frame: DataFrame, rows: int, between: str = " ") -> list[Any]:
    """Return the first rows, their times formatted by Spark in the zone of the session.

    Args:
        frame: the data frame.
        rows: maximum number of rows.
        between: separator of the date and the time of day.

    Raises:
        PipelineError: Spark failed; the text is one sentence.
    """
    from pyspark.errors import PySparkException

    try:
        rows_read: list[Any] = with_texts(frame, between).limit(rows).collect()
    except PySparkException as error:
        raise PipelineError(reason_of(error)) from None
    return rows_read


def with_texts(frame: DataFrame, between: str) -> DataFrame:
    """Return the same rows, with texts in place of times and dates."""
    from pyspark.sql import functions as f

    names = frame.columns
    # A query may have two columns of one name.
    numbered = frame.toDF(*(f"column{number}" for number in range(len(names))))
    columns = [
        _written(f.col(field.name), field.dataType, between).alias(field.name)
        for field in numbered.schema
    ]
    return numbered.select(*columns).toDF(*names)


def _written(column: Any, kind: DataType, between: str) -> Any:
    """Convert a column to text where its type has times."""
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    if isinstance(kind, t.TimestampType | t.TimestampNTZType):
        return f.replace(column.cast("string"), f.lit(" "), f.lit(between))
    if isinstance(kind, t.DateType):
        return column.cast("string")
    if isinstance(kind, t.ArrayType) and has_times(kind):
        return f.transform(column, lambda each: _written(each, kind.elementType, between))
    if isinstance(kind, t.MapType) and has_times(kind):
        keys = f.transform_keys(column, lambda key, _: _written(key, kind.keyType, between))
        return f.transform_values(keys, lambda _, value: _written(value, kind.valueType, between))
    if isinstance(kind, t.StructType) and has_times(kind):
        fields = [
            _written(column.getField(field.name), field.dataType, between).alias(field.name)
            for field in kind.fields
        ]
        return f.when(column.isNotNull(), f.struct(*fields))
    return column


def has_times(kind: DataType) -> bool:
    """True if a type is a time or date, or contains one."""
    from pyspark.sql import types as t

    if isinstance(kind, t.ArrayType):
        return has_times(kind.elementType)
    if isinstance(kind, t.MapType):
        return has_times(kind.keyType) or has_times(kind.valueType)
    if isinstance(kind, t.StructType):
        return any(has_times(field.dataType) for field in kind.fields)
    return isinstance(kind, t.TimestampType | t.TimestampNTZType | t.DateType)
