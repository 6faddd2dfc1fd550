"""Parquet files of `lake('path')` for DuckDB, which may open no files itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sql.embedded.given_table import GivenTable
from harebell.pipeline.sql.embedded.kinds import (
    BOOL,
    BYTES,
    DATE,
    DECIMAL,
    DOUBLE,
    INT,
    LONG,
    TEXT,
    TIME,
    Kind,
    NeedsSpark,
)
from harebell.pipeline.sql.tables import place_of

if TYPE_CHECKING:
    import pyarrow as pa

_HIDDEN = ("_", ".")
"""The first characters of files that Spark leaves out."""


def open_lake(name: str, root: Path) -> GivenTable:
    """Open a table.

    Args:
        name: its path, absolute or relative.
        root: base of a relative path.

    Raises:
        PipelineError: it does not exist, or cannot be read.
        NeedsSpark: only Spark reads it.
    """
    import pyarrow.dataset as ds

    path, is_delta = place_of(name, root)
    if is_delta:
        raise NeedsSpark("the Delta table of lake()")
    files = []
    for each in sorted(path.iterdir()):
        if each.name.startswith(_HIDDEN):
            continue
        if each.is_dir() or each.suffix != ".parquet":
            raise NeedsSpark(f"what else is in the directory of lake(): {each.name!r}")
        if not each.is_file():
            # Opening a pipe would wait for its other end.
            raise PipelineError(f"{each} is no file, so lake() cannot read it")
        files.append(str(each))
    schemas = [_schema_of(each) for each in files]
    if any(not each.equals(schemas[0]) for each in schemas):
        raise NeedsSpark("the files of lake(), which have different columns")
    columns = tuple((field.name, _kind_of(field.type)) for field in schemas[0])
    if len({column.lower() for column, _ in columns}) != len(columns):
        raise NeedsSpark("two columns of one name in lake()")
    return GivenTable(columns, ds.dataset(files, schemas[0], format="parquet"))


def _schema_of(file: str) -> pa.Schema:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(file)
    except (OSError, pa.ArrowException):
        raise NeedsSpark(f"a file of lake(): {Path(file).name!r}") from None


def _kind_of(kind: pa.DataType) -> Kind:
    import pyarrow as pa

    plain = {
        pa.int32(): INT,
        pa.int64(): LONG,
        pa.float64(): DOUBLE,
        pa.string(): TEXT,
        pa.binary(): BYTES,
        pa.bool_(): BOOL,
        pa.date32(): DATE,
    }
    if kind in plain:
        return plain[kind]
    if pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit in ("us", "ms"):
        return TIME
    if pa.types.is_decimal128(kind):
        return Kind(DECIMAL, scale=(kind.precision, kind.scale))
    if pa.types.is_struct(kind):
        return Kind("STRUCT", fields=tuple((each.name, _kind_of(each.type)) for each in kind))
    if pa.types.is_map(kind) and kind.key_type == pa.string():
        return Kind("MAP", inner=_kind_of(kind.item_type))
    raise NeedsSpark(f"a column of the type {kind} in lake()")
