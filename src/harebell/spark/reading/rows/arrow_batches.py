"""Convert chunks of column buffers to Arrow record batches, without copying.

The buffers are in the order that `harebell.kernels.columns` documents. The schema is Spark's own
translation of its schema, because Spark compares the schema of each batch with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Chunk = tuple[int, int, list[bytes | None]]
"""Position of the first row, rows, buffers."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects from a source with this schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def record_batch(chunk: Chunk, schema: pa.Schema) -> pa.RecordBatch:
    """Return a record batch over the buffers of a chunk."""
    _, rows, buffers = chunk
    remaining = (None if buffer is None else pa.py_buffer(buffer) for buffer in buffers)
    arrays = [_column(field.type, rows, remaining) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(kind: pa.DataType, rows: int, remaining: Iterator[pa.Buffer | None]) -> pa.Array:
    if pa.types.is_struct(kind):
        children = [_column(field.type, rows, remaining) for field in kind]
        return pa.Array.from_buffers(kind, rows, [None], children=children)
    if pa.types.is_map(kind):
        return _map(kind, rows, remaining)
    # Texts and bytes have validity, offsets and data; numbers have no offsets.
    count = 3 if pa.types.is_string(kind) or pa.types.is_binary(kind) else 2
    return pa.Array.from_buffers(kind, rows, [next(remaining) for _ in range(count)])


def _map(kind: pa.MapType, rows: int, remaining: Iterator[pa.Buffer | None]) -> pa.Array:
    validity, offsets = next(remaining), next(remaining)
    assert offsets is not None, "a map always has offsets"
    # The last offset is the number of entries in all rows.
    entries = int.from_bytes(offsets[-4:].to_pybytes(), "little")
    keys = _column(kind.key_type, entries, remaining)
    items = _column(kind.item_type, entries, remaining)
    pairs = pa.struct([kind.key_field, kind.item_field])
    both = pa.Array.from_buffers(pairs, entries, [None], children=[keys, items])
    return pa.Array.from_buffers(kind, rows, [validity, offsets], children=[both])
