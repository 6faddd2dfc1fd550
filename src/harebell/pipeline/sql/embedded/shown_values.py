"""Convert Arrow batches to rows of Python values, with times as texts, as `shown_rows` has them.

Python has no time after the year 9999, and Arrow and Spark have.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_SECOND, _DAY = 1_000_000, 86_400
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""The calendar repeats itself."""
_EPOCH = date(1970, 1, 1)


def rows_of(batch: pa.RecordBatch, between: str) -> list[tuple[Any, ...]]:
    """Return the rows of a batch.

    Args:
        batch: the rows.
        between: separator of the date and the time of day.
    """
    return list(zip(*(_values(column, between) for column in batch.columns), strict=True))


def _values(column: pa.Array, between: str) -> list[Any]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", kind.tz)).view(pa.int64()).to_pylist()
        return [None if each is None else time_text(each, between) for each in micros]
    if pa.types.is_date(kind):
        days = column.cast(pa.date32()).view(pa.int32()).to_pylist()
        return [None if each is None else _day_text(each) for each in days]
    if pa.types.is_struct(kind):
        fields = {field.name: _values(column.field(field.name), between) for field in kind}
        rows = [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
        return [
            row if there.as_py() else None
            for row, there in zip(rows, column.is_valid(), strict=True)
        ]
    if pa.types.is_map(kind):
        return [None if each is None else dict(each) for each in column.to_pylist()]
    return list(column.to_pylist())


def time_text(micros: int, between: str) -> str:
    """Return a time of UTC as Spark writes it.

    Args:
        micros: microseconds since 1970.
        between: separator of the date and the time of day.
    """
    seconds, micros = divmod(micros, _SECOND)
    days, seconds = divmod(seconds, _DAY)
    hours, minutes = divmod(seconds // 60, 60)
    fraction = f".{micros:06}".rstrip("0") if micros else ""
    return f"{_day_text(days)}{between}{hours:02}:{minutes:02}:{seconds % 60:02}{fraction}"


def _day_text(days: int) -> str:
    cycles, rest = divmod(days, _CYCLE_DAYS)
    day = _EPOCH + timedelta(days=rest)
    year = day.year + cycles * _CYCLE_YEARS
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{day.month:02}-{day.day:02}"
