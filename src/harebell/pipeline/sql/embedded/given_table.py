"""A table that a query may name and that comes from no queue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harebell.pipeline.sql.embedded.kinds import BOOL, BYTES, DOUBLE, LONG, TEXT, Kind

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

_LONG_MAX = 2**63


@dataclass(frozen=True)
class GivenTable:
    """Columns of Arrow.

    Args:
        columns: their names and types.
        data: what DuckDB reads.
    """

    columns: tuple[tuple[str, Kind], ...]
    data: ds.Dataset | pa.Table


def table_of(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> GivenTable:
    """Return rows as a table; a column of several types has texts, and the first of a name counts.

    Args:
        columns: their names.
        rows: their values.
    """
    import pyarrow as pa

    made: dict[str, tuple[str, Kind, pa.Array]] = {}
    for at, name in enumerate(columns):
        if name.lower() not in made:
            kind, values = _typed([row[at] for row in rows])
            types = {BOOL: pa.bool_(), LONG: pa.int64(), DOUBLE: pa.float64(), BYTES: pa.binary()}
            array = pa.array(values, types.get(kind, pa.string()))
            made[name.lower()] = (name, kind, array)
    data = pa.table({name: array for name, _, array in made.values()})
    return GivenTable(tuple((name, kind) for name, kind, _ in made.values()), data)


def _typed(values: list[Any]) -> tuple[Kind, list[Any]]:
    types = {type(value) for value in values if value is not None}
    if types == {bool}:
        return BOOL, values
    if types == {int} and all(abs(value) < _LONG_MAX for value in values if value is not None):
        return LONG, values
    if types in ({float}, {int, float}):
        return DOUBLE, [None if value is None else float(value) for value in values]
    if types and types <= {bytes, bytearray}:
        return BYTES, values
    return TEXT, [_text(value) for value in values]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        # What is no Unicode comes from no broker, and Arrow refuses it.
        return value if value is None else value.encode(errors="replace").decode()
    if isinstance(value, bool | dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
