"""The rows of some ordering keys: each task of a micro-batch has its share of the keys.

All tasks read the same ranges, and each drops the rows of keys that are not its own. That is much
cheaper than a test of every message in the broker, and needs no queue with an ordering key: streams
are read in the order of each key in the same way.
"""

from __future__ import annotations

from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

ROUTING_KEY = "routing_key"
_PROPERTIES = "properties"
_HEADERS = "headers"


def column_of(key: str) -> str:
    """Return the column of the broker in which an ordering key is."""
    name, dot, _ = key.partition(".")
    return name if dot else ROUTING_KEY


def field_of(key: str) -> str | None:
    """Return the field of `properties` that an ordering key is; None if it is none."""
    name, dot, field = key.partition(".")
    return field if dot and name == _PROPERTIES else None


def of_share(batch: pa.RecordBatch, key: str, share: int, count: int) -> pa.RecordBatch:
    """Return the rows whose keys belong to a share; rows without a key belong to the first.

    Args:
        batch: rows as the broker sent them.
        key: the ordering key.
        share: number of the share, from 0.
        count: how many shares there are.
    """
    if count == 1:
        return batch
    # Each different key is hashed once.
    keys = _keys(batch, key).dictionary_encode()
    # Not `hash`, which differs between processes: all tasks must agree on the shares.
    shares = [crc32(str(value).encode()) % count for value in keys.dictionary.to_pylist()]
    own = pa.array([each == share for each in shares], pa.bool_())
    return batch.filter(pc.fill_null(own.take(keys.indices), share == 0))


def _keys(batch: pa.RecordBatch, key: str) -> pa.Array:
    column = batch.column(column_of(key))
    field = field_of(key)
    if field is not None:
        return pc.struct_field(column, field)
    if column_of(key) == _HEADERS:
        return pc.map_lookup(column, key.partition(".")[2], "first")
    return column
